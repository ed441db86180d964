// The Database port over a transport: it checks once in each isolate that the schema fits and that no cache answers, sends
// statements again where that does no harm, and turns the driver's errors into Sluice's.
import { databaseError, isCollision, StatementError, sqlstateOf } from "../../core/database-errors.ts";
import { SluiceError } from "../../core/errors.ts";
import { requireSchemaVersion } from "../../core/sql/schema-version.ts";
import { type CompiledStatement, compile, type Row, type Statement } from "../../core/sql/statement.ts";
import type { Database, RunOptions } from "../../queue/ports.ts";
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
  async function send(statement: Statement<unknown>, { limitMs }: RunOptions): Promise<Row[]> {
    const checks = isolate.fitsSchema ? [] : [compile(requireSchemaVersion(), schema)];
    const limits = limitMs === undefined ? [] : [limitOf(limitMs)];
    // A limit lasts until the end of its transaction, so all of them share one.
    const options = { timeoutMs, isReadCommitted: isolate.needsReadCommitted || limits.length > 0 };
    try {
      const rows = await transport.send([...limits, ...checks, compile(statement, schema)], options);
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
  async function sendWithRetry(statement: Statement<unknown>, options: RunOptions): Promise<Row[]> {
    const startedMs = Date.now();
    try {
      return await send(statement, options);
    } catch (error) {
      const sqlstate = sqlstateOf(error) ?? "";
      // READ COMMITTED has no serialization failures, so the isolation level must be a stricter one.
      if (sqlstate === "40001") isolate.needsReadCommitted = true;
      if (isCollision(sqlstate)) return send(statement, options);
      const isQuick = Date.now() - startedMs < quickFailureMs;
      const isUnavailable = error instanceof SluiceError && error.code === "database_unavailable";
      // A statement that is not repeatable may have been committed before its answer was lost.
      if (!(statement.isRepeatable && isUnavailable && isQuick)) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * maxPauseMs));
      return send(statement, options);
    }
  }

  const run: Database["run"] = async (statement, options = {}) =>
    statement.decode(await sendWithRetry(statement, options));
  return {
    async run(statement, options) {
      try {
        if (transport.mayCache) await refuseCache(isolate, { run });
        const answer = await run(statement, options);
        recordSuccess(isolate, statement.name);
        return answer;
      } catch (error) {
        recordFailure(isolate, statement.name, error);
        throw error;
      }
    },
  };
}

function limitOf(ms: number): CompiledStatement {
  return { text: "select set_config('statement_timeout', $1::text, true)", values: [String(ms)] };
}
