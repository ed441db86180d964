// The Database port over Neon's HTTP driver: one statement, one POST. No client outlives its request.
import { NeonDbError, neon, neonConfig } from "@neondatabase/serverless";
import { type ErrorCode, SluiceError } from "../core/errors.ts";
import { compile, type Row, type Statement } from "../core/sql/statement.ts";
import type { Database } from "../queue/ports.ts";
import type { Settings } from "./env.ts";

/** A database that fails at once may just be waking up; one that failed slowly is not asked again. */
const quickFailureMs = 1000;
const maxPauseMs = 250;

/** Without a time-out a query to a database that went away can hang for ever. */
export function createNeonDatabase(settings: Settings, { timeoutMs }: { timeoutMs: number }): Database {
  if (settings.neonEndpoint) neonConfig.fetchEndpoint = settings.neonEndpoint;
  const query = neon(settings.databaseUrl);

  async function send(statement: Statement<unknown>): Promise<Row[]> {
    const { text, values } = compile(statement, settings.schema);
    const fetchOptions = { signal: AbortSignal.timeout(timeoutMs) };
    try {
      return (await query.query(text, values, { fetchOptions })) as Row[];
    } catch (error) {
      throw toSluiceError(error);
    }
  }

  /** Once more, where that does no harm: its answer may have been lost after the commit. */
  async function sendTwice(statement: Statement<unknown>): Promise<Row[]> {
    const startedMs = Date.now();
    try {
      return await send(statement);
    } catch (error) {
      const isQuick = Date.now() - startedMs < quickFailureMs;
      const isOutOfReach = error instanceof SluiceError && error.code === "database_unavailable";
      if (!(statement.isRepeatable && isOutOfReach && isQuick)) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * maxPauseMs));
      return send(statement);
    }
  }

  return {
    async run(statement) {
      return (await sendTwice(statement)).map((row) => statement.decode(row));
    },
  };
}

/** What the engine's own SQLSTATEs mean (migrations/functions/enqueue.sql). */
const engineErrors = new Map<string, ErrorCode>([
  ["SL422", "idempotency_conflict"],
  ["22023", "request_invalid"],
]);

function toSluiceError(cause: unknown): unknown {
  const code = cause instanceof NeonDbError ? cause.code : undefined;
  const engineCode = engineErrors.get(code ?? "");
  if (engineCode) return new SluiceError(engineCode, (cause as NeonDbError).message, { cause });
  if (isOutOfReach(code))
    return new SluiceError("database_unavailable", "the database is out of reach", { cause });
  return cause;
}

/**
 * No SQLSTATE: no answer. 08, 57P0, 53300: the connection failed, the server stops or starts, no connection is
 * free. 28, 3D: it does not let us in, or has no such database.
 */
function isOutOfReach(code: string | undefined): boolean {
  return !code || /^(08|57P0|53300|28|3D)/.test(code);
}
