// Every error of the API becomes a problem document here. What a caller cannot act on stays out of it:
// no SQL, no stack, no secret.
import type { Context } from "hono";
import { routePath } from "hono/route";
import type { Problem } from "../../../contract/problem.ts";
import { describeError } from "../../../core/database-errors.ts";
import { type ErrorCode, SluiceError } from "../../../core/errors.ts";
import { consoleLog } from "../../console-log.ts";

interface ProblemKind {
  status: number;
  title: string;
  /** When another try makes sense, if the error does not say itself. */
  retryAfterSeconds?: number;
}

const problems: Record<ErrorCode, ProblemKind> = {
  settings_invalid: { status: 500, title: "The Worker's settings do not hold" },
  request_invalid: { status: 400, title: "The request is not valid" },
  body_too_large: { status: 413, title: "The body is too large" },
  body_not_json: { status: 415, title: "The body is not JSON" },
  unauthorized: { status: 401, title: "The key is missing or unknown" },
  forbidden: { status: 403, title: "The key may not do this" },
  type_unknown: { status: 403, title: "The type is not registered" },
  not_found: { status: 404, title: "There is no such thing here" },
  method_not_allowed: { status: 405, title: "The method is not allowed here" },
  conflict: { status: 409, title: "The state does not allow this" },
  lease_lost: { status: 409, title: "The lease is lost" },
  already_settled: { status: 409, title: "This lease had settled the job before" },
  idempotency_conflict: { status: 422, title: "The idempotency key was used for another request" },
  database_unavailable: { status: 503, title: "The database is out of reach", retryAfterSeconds: 5 },
  database_not_neon: {
    status: 503,
    title: "The database does not speak Neon's protocol",
    retryAfterSeconds: 30,
  },
  database_read_only: { status: 503, title: "The database takes no writes", retryAfterSeconds: 5 },
  database_full: { status: 503, title: "The database's disk is full", retryAfterSeconds: 30 },
  database_failing: { status: 503, title: "The database server is in trouble", retryAfterSeconds: 10 },
  database_busy: { status: 503, title: "The database is busy", retryAfterSeconds: 1 },
  schema_outdated: { status: 503, title: "Sluice's schema is missing or too old", retryAfterSeconds: 30 },
  queue_full: { status: 429, title: "The queue is full", retryAfterSeconds: 1 },
  rate_limited: { status: 429, title: "The key is used too often", retryAfterSeconds: 1 },
  internal: { status: 500, title: "Something went wrong here" },
};

/** `asked`: for the log. */
export function problemResponse(error: unknown, asked: { method?: string; route?: string } = {}): Response {
  const known =
    error instanceof SluiceError
      ? error
      : new SluiceError("internal", "an unexpected error, which the Worker's log has", { cause: error });
  const { status, title, retryAfterSeconds } = problems[known.code];
  if (status >= 500) logFailure(known, asked);
  const body: Problem = {
    type: `urn:sluice:problem:${known.code}`,
    title,
    status,
    detail: known.message,
    ...(known.faults.length > 0 ? { errors: [...known.faults] } : {}),
  };
  const headers = new Headers({ "content-type": "application/problem+json" });
  if (status === 401) headers.set("www-authenticate", "Bearer");
  const seconds = known.retryAfterSeconds ?? retryAfterSeconds;
  if (seconds) headers.set("retry-after", String(seconds));
  return new Response(JSON.stringify(body), { status, headers });
}

export const onError = (error: Error, context: Context): Response =>
  problemResponse(error, { method: context.req.method, route: routePath(context, -1) });

function logFailure({ code, message, cause }: SluiceError, asked: object): void {
  const reason = cause instanceof Error ? cause : undefined;
  consoleLog.error("request failed", {
    ...asked,
    code,
    ...(reason && describeError(reason)),
    ...(code === "internal" && reason ? {} : { message }),
    cause: reason && causeText(reason),
  });
}

/** With its stack, and what lies behind it. */
export function causeText(error: Error): string {
  const text = error.stack ?? error.message;
  return error.cause instanceof Error ? `${text}\ncaused by: ${causeText(error.cause)}` : text;
}
