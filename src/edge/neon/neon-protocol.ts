// Tells a database that is away from one that Neon's HTTP driver cannot speak to at all, by how the call failed.
import { NeonDbError } from "@neondatabase/serverless";
import type { Settings } from "../settings/env.ts";

/** What Neon itself answers with when something is wrong: 400 for SQL, 429 and 5xx for the rest. */
const neonsStatus = /^Server error \(HTTP status (429|5\d\d)\)/;

export function isNeonMissing(error: unknown, { neonEndpoint, databaseUrl }: Settings): boolean {
  if (!(error instanceof NeonDbError)) return isOddAnswer(error);
  if (error.code || isTimeout(error)) return false;
  if (error.message.startsWith("Server error")) return !neonsStatus.test(error.message);
  // No answer at all. A host of Neon's, or one that the operator named, is away; any other never was there.
  const isNeonsHost = /\.neon\.(tech|build)$/.test(new URL(databaseUrl).hostname);
  return error.sourceError !== undefined && !neonEndpoint && !isNeonsHost;
}

/** It is not JSON, or not of Neon's shape; an answer that was cut off is another error. */
function isOddAnswer(error: unknown): boolean {
  return (
    error instanceof SyntaxError || (error instanceof TypeError && error.message.startsWith("Cannot read"))
  );
}

function isTimeout({ sourceError }: NeonDbError): boolean {
  const { name = "" } = (sourceError ?? {}) as { name?: string };
  return name === "TimeoutError" || name === "AbortError";
}
