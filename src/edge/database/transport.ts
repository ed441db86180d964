// A transport takes compiled statements to Postgres: over Neon's HTTP, or over a connection through Hyperdrive. Each
// invocation has one of its own, because a socket or a promise of another invocation cannot be used.
import type { SluiceError } from "../../core/errors.ts";
import type { CompiledStatement, Row } from "../../core/sql/statement.ts";
import type { Settings } from "../settings/env.ts";

export interface Transport {
  /**
   * Runs the statements in order, up to the first that fails. Answers with the rows of the last. Each is a transaction of
   * its own, or all are one transaction at READ COMMITTED.
   */
  send(statements: readonly CompiledStatement[], options: SendOptions): Promise<Row[]>;
  /** Empty if Postgres did not answer. */
  sqlstateOf(error: unknown): string;
  /** Undefined if the SQLSTATE says it all. */
  explain?(error: unknown, cause: Error): SluiceError | undefined;
  /** Whether a cache may answer instead of Postgres. */
  readonly mayCache: boolean;
  /** No statement follows. */
  close(): Promise<void>;
}

export interface SendOptions {
  /** For all statements together, and for the connection. */
  timeoutMs: number;
  isReadCommitted: boolean;
}

/** A kind of transport. */
export interface DatabaseKind {
  /** Whether the Worker has the binding or the variable that it needs. */
  isIn(settings: Settings): boolean;
  open(settings: Settings): Transport;
}
