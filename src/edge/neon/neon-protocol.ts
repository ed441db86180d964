// Decides by a failed call whether the database is unreachable now, or whether its host is no Neon database at all.
import { NeonDbError } from "@neondatabase/serverless";

/** Neon's own error statuses, except 400 for errors of SQL, which have a code. */
const neonErrorStatus = /^Server error \(HTTP status (429|5\d\d)\)/;

export function isNeonMissing(
  error: unknown,
  { neonEndpoint, databaseUrl }: { neonEndpoint: string | undefined; databaseUrl: string },
): boolean {
  if (!(error instanceof NeonDbError)) return isOddAnswer(error);
  if (error.code || isTimeout(error)) return false;
  if (error.message.startsWith("Server error")) return !neonErrorStatus.test(error.message);
  // There was no answer. A host of Neon or the one in the settings is unreachable now. Any other host is no Neon database.
  const isNeonsHost = /\.neon\.(tech|build)$/.test(new URL(databaseUrl).hostname);
  return error.sourceError !== undefined && !neonEndpoint && !isNeonsHost;
}

/** The answer is not JSON, or not in Neon's format. An answer that was cut off is another error. */
function isOddAnswer(error: unknown): boolean {
  return (
    error instanceof SyntaxError || (error instanceof TypeError && error.message.startsWith("Cannot read"))
  );
}

function isTimeout({ sourceError }: NeonDbError): boolean {
  const { name = "" } = (sourceError ?? {}) as { name?: string };
  return name === "TimeoutError" || name === "AbortError";
}
