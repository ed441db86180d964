// The Database port over a transport: it checks once in each isolate that the schema fits and that no cache answers, sends
// statements again where that does no harm, and turns the driver's errors into Sluice's.
import { databaseError, isCollision, StatementError, sqlstateOf } from "../../core/database-errors.ts";
import { SluiceError } from "../../core/errors.ts";
import { requireSchemaVersion } from "../../core/sql/schema-version.ts";
import { compile, type Row, type Statement } from "../../core/sql/statement.ts";
import type { Database } from "../../queue/ports.ts";
import type { IsolateState } from "../isolate-state.ts";
import { refuseCache } from "./query-cache.ts";
import { recordFailure, recordSuccess } from "./refused-writes.ts";
import type { Transport } from "./transport.ts";

/** A database that fails within this time may be waking up, so the statement is sent again. */
const quickFailureMs = 1000;
const maxPauseMs = 250;

export interface DatabaseOptions {
  schema: string;
  /** The limit of one statement. It is needed because a query can hang for ever if the database disappears. */
  timeoutMs: number;
  isolate: IsolateState;
}

export function createDatabase(
  transport: Transport,
  { schema, timeoutMs, isolate }: DatabaseOptions,
): Database {
  async function send(statement: Statement<unknown>): Promise<Row[]> {
    const checks = isolate.fitsSchema ? [] : [compile(requireSchemaVersion(), schema)];
    const options = { timeoutMs, isReadCommitted: isolate.needsReadCommitted };
    try {
      const rows = await transport.send([...checks, compile(statement, schema)], options);
      isolate.fitsSchema = true;
      return rows;
    } catch (error) {
      const cause = new StatementError(statement.name, error);
      const { message } = error as Error;
      throw (
        transport.explain?.(error, cause) ??
        databaseError(transport.sqlstateOf(error), { message, cause }) ??
        cause
      );
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

  const run: Database["run"] = async (statement) => statement.decode(await sendWithRetry(statement));
  return {
    async run(statement) {
      try {
        if (transport.mayCache) await refuseCache(isolate, { run });
        const answer = await run(statement);
        recordSuccess(isolate, statement.name);
        return answer;
      } catch (error) {
        recordFailure(isolate, statement.name, error);
        throw error;
      }
    },
  };
}
