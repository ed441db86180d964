// The Database port over Neon's HTTP driver: one statement, one POST. No client outlives its request.
import { NeonDbError, neon, neonConfig } from "@neondatabase/serverless";
import { type ErrorCode, SluiceError } from "../core/errors.ts";
import { compile, type Row, type Statement } from "../core/sql/statement.ts";
import type { Database } from "../queue/ports.ts";
import type { Settings } from "./env.ts";

/** Without a limit a query to a database that went away can hang for ever. */
const queryTimeoutMs = 10_000;

export function createNeonDatabase(settings: Settings): Database {
  if (settings.neonEndpoint) neonConfig.fetchEndpoint = settings.neonEndpoint;
  const query = neon(settings.databaseUrl);

  async function send(statement: Statement<unknown>): Promise<Row[]> {
    const { text, values } = compile(statement, settings.schema);
    const fetchOptions = { signal: AbortSignal.timeout(queryTimeoutMs) };
    try {
      return (await query.query(text, values, { fetchOptions })) as Row[];
    } catch (error) {
      throw toSluiceError(error);
    }
  }

  return {
    async run(statement) {
      return (await send(statement)).map((row) => statement.decode(row));
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
