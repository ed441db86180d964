// The Database port over Neon's HTTP driver. Each statement is one POST. Each invocation has a client of its own.
import { NeonDbError, neon, neonConfig } from "@neondatabase/serverless";
import { databaseError, isCollision, StatementError, sqlstateOf } from "../../core/database-errors.ts";
import { SluiceError } from "../../core/errors.ts";
import { requireSchemaVersion } from "../../core/sql/schema-version.ts";
import { compile, type Row, type Statement } from "../../core/sql/statement.ts";
import type { Database } from "../../queue/ports.ts";
import type { IsolateState } from "../isolate-state.ts";
import type { Settings } from "../settings/env.ts";
import { isNeonMissing } from "./neon-protocol.ts";
import { recordFailure, recordSuccess } from "./refused-writes.ts";

/** A database that fails within this time may be waking up, so the statement is sent again. */
const quickFailureMs = 1000;
const maxPauseMs = 250;

const driverEndpoint = neonConfig.fetchEndpoint;

/** The time-out is needed because a query can hang for ever if the database disappears. */
export function createNeonDatabase(
  settings: Settings,
  { timeoutMs, isolate }: { timeoutMs: number; isolate: IsolateState },
): Database {
  // The driver has one endpoint for the whole isolate and reads it at each query.
  neonConfig.fetchEndpoint = settings.neonEndpoint ?? driverEndpoint;
  const query = neon(settings.databaseUrl);

  async function send(statement: Statement<unknown>): Promise<Row[]> {
    const { text, values } = compile(statement, settings.schema);
    const fetchOptions = { signal: AbortSignal.timeout(timeoutMs) };
    try {
      // The other way, a batch, can set its isolation level, but needs a transaction block around the statement.
      if (isolate.fitsSchema && !isolate.needsReadCommitted)
        return (await query.query(text, values, { fetchOptions })) as Row[];
      // The check is in the same transaction, so nothing is written to a schema that is too old.
      const check = compile(requireSchemaVersion(), settings.schema);
      const checks = isolate.fitsSchema ? [] : [query.query(check.text, check.values)];
      const batch = [...checks, query.query(text, values)];
      const results = await query.transaction(batch, { fetchOptions, isolationLevel: "ReadCommitted" });
      isolate.fitsSchema = true;
      return results.at(-1) as Row[];
    } catch (error) {
      throw toSluiceError(error, statement.name, settings);
    }
  }

  /** Sends the statement again after some errors, if that does no harm. */
  async function sendWithRetry(statement: Statement<unknown>): Promise<Row[]> {
    const startedMs = Date.now();
    try {
      return await send(statement);
    } catch (error) {
      const sqlstate = sqlstateOf(error) ?? "";
      // READ COMMITTED has no serialization failures, so the isolation level must be a stricter one.
      if (sqlstate === "40001") isolate.needsReadCommitted = true;
      if (isCollision(sqlstate)) return send(statement);
      const isQuick = Date.now() - startedMs < quickFailureMs;
      const isUnavailable = error instanceof SluiceError && error.code === "database_unavailable";
      // A statement that is not repeatable may have been committed before its answer was lost.
      if (!(statement.isRepeatable && isUnavailable && isQuick)) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * maxPauseMs));
      return send(statement);
    }
  }

  return {
    async run(statement) {
      try {
        const rows = await sendWithRetry(statement);
        recordSuccess(isolate, statement.name);
        return statement.decode(rows);
      } catch (error) {
        recordFailure(isolate, statement.name, error);
        throw error;
      }
    },
  };
}

function toSluiceError(error: unknown, statement: string, settings: Settings): Error {
  const cause = new StatementError(statement, error);
  if (isNeonMissing(error, settings)) {
    // The host is only for the log.
    const { host } = new URL(settings.neonEndpoint ?? settings.databaseUrl);
    const hostError = new Error(`${host} does not speak Neon's HTTP protocol`, { cause });
    return new SluiceError("database_not_neon", notNeonText, { cause: hostError });
  }
  const sqlstate = error instanceof NeonDbError ? (error.code ?? "") : "";
  return databaseError(sqlstate, { message: (error as Error).message, cause }) ?? cause;
}

const notNeonText =
  "the host of DATABASE_URL does not speak Neon's HTTP protocol: use a Neon database, or set SLUICE_NEON_ENDPOINT to a " +
  "proxy that speaks it";
