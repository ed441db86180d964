// Every error of the API becomes a problem document here. What a caller cannot act on stays out of it:
// no SQL, no stack, no secret.
import type { Context } from "hono";
import type { Problem } from "../../contract/problem.ts";
import { type ErrorCode, SluiceError } from "../../core/errors.ts";
import { consoleLog } from "../console-log.ts";

const problems: Record<ErrorCode, { status: number; title: string }> = {
  settings_invalid: { status: 500, title: "The Worker's settings do not hold" },
  request_invalid: { status: 400, title: "The request is not valid" },
  body_too_large: { status: 413, title: "The body is too large" },
  body_not_json: { status: 415, title: "The body is not JSON" },
  unauthorized: { status: 401, title: "The key is missing or unknown" },
  forbidden: { status: 403, title: "The key may not do this" },
  not_found: { status: 404, title: "There is no such thing here" },
  method_not_allowed: { status: 405, title: "The method is not allowed here" },
  conflict: { status: 409, title: "The state does not allow this" },
  lease_lost: { status: 409, title: "The lease is lost" },
  idempotency_conflict: { status: 422, title: "The idempotency key was used for another request" },
  database_unavailable: { status: 503, title: "The database is out of reach" },
  queue_full: { status: 429, title: "The queue is full" },
  rate_limited: { status: 429, title: "The key is used too often" },
  internal: { status: 500, title: "Something went wrong here" },
};

/** A database that is away, and the window of a key's rate limit. */
const retryAfterSeconds = new Map([
  [503, 5],
  [429, 1],
]);

export function problemResponse(error: unknown): Response {
  const known =
    error instanceof SluiceError
      ? error
      : new SluiceError("internal", "see the Worker's log", { cause: error });
  const { status, title } = problems[known.code];
  if (status >= 500) consoleLog.error(known.message, { code: known.code, cause: describe(known.cause) });
  const body: Problem = {
    type: `urn:sluice:problem:${known.code}`,
    title,
    status,
    detail: known.message,
    ...(known.faults.length > 0 ? { errors: [...known.faults] } : {}),
  };
  const headers = new Headers({ "content-type": "application/problem+json" });
  if (status === 401) headers.set("www-authenticate", "Bearer");
  const seconds = known.retryAfterSeconds ?? retryAfterSeconds.get(status);
  if (seconds) headers.set("retry-after", String(seconds));
  return new Response(JSON.stringify(body), { status, headers });
}

export const onError = (error: Error, _context: Context): Response => problemResponse(error);

function describe(cause: unknown): string | undefined {
  return cause instanceof Error ? (cause.stack ?? cause.message) : undefined;
}
