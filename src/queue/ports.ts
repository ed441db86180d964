// The whole outside, on one screen. Everything in queue/ reaches the world through these and nothing else.
import type { Json, Payload } from "../core/job.ts";
import type { Backoff } from "../core/policy/backoff.ts";
import type { Statement } from "../core/sql/statement.ts";

/** Statement in, rows out. Over HTTP there are no sessions: a step is one statement. */
export interface Database {
  run<T>(statement: Statement<T>): Promise<T[]>;
}

export interface Clock {
  nowMs(): number;
}

/** A number in [0, 1). */
export type Random = () => number;

export interface Log {
  info(event: string, fields?: Record<string, unknown>): void;
  warn(event: string, fields?: Record<string, unknown>): void;
  error(event: string, fields?: Record<string, unknown>): void;
}

export interface HandlerContext<Env = unknown> {
  readonly jobId: string;
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Rises with every claim of the job: use it to fence your own writes. */
  readonly leaseGeneration: string;
  /** Aborted when the type's time-out has passed. */
  readonly signal: AbortSignal;
  readonly log: Log;
  /** The platform's bindings, as the Worker was given them. */
  readonly env: Env;
}

/** What the queue has to know of a job type. */
export interface Handler {
  readonly type: string;
  readonly queue: string;
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly timeoutSeconds: number;
  /** Throws what `core/errors` names; anything else counts as a failure to be tried again. */
  run(payload: Payload, context: HandlerContext): Promise<Json>;
}

export interface Registry {
  find(type: string): Handler | undefined;
  all(): readonly Handler[];
}

export interface Queue {
  readonly db: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly registry: Registry;
  readonly env: unknown;
}
