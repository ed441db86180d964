// The Database port over Neon's HTTP driver: one statement, one POST. No client outlives its request.
import { NeonDbError, neon, neonConfig } from "@neondatabase/serverless";
import { databaseError, isCollision, StatementError, sqlstateOf } from "../../core/database-errors.ts";
import { SluiceError } from "../../core/errors.ts";
import { requireSchemaVersion } from "../../core/sql/schema-version.ts";
import { compile, type Row, type Statement } from "../../core/sql/statement.ts";
import type { Database } from "../../queue/ports.ts";
import type { IsolateState } from "../isolate-state.ts";
import type { Settings } from "../settings/env.ts";
import { isNeonMissing } from "./neon-protocol.ts";
import { noteFailure, noteSuccess } from "./refused-writes.ts";

/** A database that fails at once may just be waking up; one that failed slowly is not asked again. */
const quickFailureMs = 1000;
const maxPauseMs = 250;

const neonsOwnEndpoint = neonConfig.fetchEndpoint;

/** Without a time-out a query to a database that went away can hang for ever. */
export function createNeonDatabase(
  settings: Settings,
  { timeoutMs, isolate }: { timeoutMs: number; isolate: IsolateState },
): Database {
  // The driver has one endpoint for the whole isolate and reads it at each query.
  neonConfig.fetchEndpoint = settings.neonEndpoint ?? neonsOwnEndpoint;
  const query = neon(settings.databaseUrl);

  async function send(statement: Statement<unknown>): Promise<Row[]> {
    const { text, values } = compile(statement, settings.schema);
    const fetchOptions = { signal: AbortSignal.timeout(timeoutMs) };
    try {
      // A batch can name its isolation level, and costs Neon two more round trips of its own.
      if (isolate.fitsSchema && !isolate.needsReadCommitted)
        return (await query.query(text, values, { fetchOptions })) as Row[];
      // In one transaction with the check, so nothing is done in a schema that is too old.
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

  /** Once more, where that does no harm. */
  async function sendTwice(statement: Statement<unknown>): Promise<Row[]> {
    const startedMs = Date.now();
    try {
      return await send(statement);
    } catch (error) {
      const sqlstate = sqlstateOf(error) ?? "";
      // READ COMMITTED has no serialization failures of its own.
      if (sqlstate === "40001") isolate.needsReadCommitted = true;
      if (isCollision(sqlstate)) return send(statement);
      const isQuick = Date.now() - startedMs < quickFailureMs;
      const isAway = error instanceof SluiceError && error.code === "database_unavailable";
      // Its answer may have been lost after the commit.
      if (!(statement.isRepeatable && isAway && isQuick)) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * maxPauseMs));
      return send(statement);
    }
  }

  return {
    async run(statement) {
      try {
        const rows = await sendTwice(statement);
        noteSuccess(isolate, statement.name);
        return statement.decode(rows);
      } catch (error) {
        noteFailure(isolate, statement.name, error);
        throw error;
      }
    },
  };
}

function toSluiceError(error: unknown, statement: string, settings: Settings): Error {
  const cause = new StatementError(statement, error);
  if (isNeonMissing(error, settings)) {
    // The host is for the log alone.
    const { host } = new URL(settings.neonEndpoint ?? settings.databaseUrl);
    const told = new Error(`${host} does not answer as Neon does`, { cause });
    return new SluiceError("database_not_neon", notNeonText, { cause: told });
  }
  const sqlstate = error instanceof NeonDbError ? (error.code ?? "") : "";
  return databaseError(sqlstate, { message: (error as Error).message, cause }) ?? cause;
}

const notNeonText =
  "nothing that speaks Neon's HTTP protocol answers for DATABASE_URL: it has to be a Neon database, or one behind a " +
  "proxy that SLUICE_NEON_ENDPOINT names";
