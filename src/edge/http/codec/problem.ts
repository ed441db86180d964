// Turns every error of the API into a problem document. It contains what a caller can act on, and no SQL, stack or secret.
import type { Context } from "hono";
import { routePath } from "hono/route";
import type { Problem } from "../../../contract/problem.ts";
import { describeError } from "../../../core/database-errors.ts";
import { type ErrorCode, SluiceError } from "../../../core/errors.ts";
import type { Log } from "../../../queue/ports.ts";
import { consoleLog } from "../../console-log.ts";
import type { AppEnv } from "../app-env.ts";

interface ProblemKind {
  status: number;
  title: string;
  /** The default. The error may have its own number. */
  retryAfterSeconds?: number;
}

const problems: Record<ErrorCode, ProblemKind> = {
  settings_invalid: { status: 500, title: "Invalid settings" },
  request_invalid: { status: 400, title: "Invalid request" },
  body_too_large: { status: 413, title: "Body too large" },
  body_not_json: { status: 415, title: "Body is not JSON" },
  unauthorized: { status: 401, title: "Missing or unknown API key" },
  forbidden: { status: 403, title: "Not allowed for this API key" },
  type_unknown: { status: 403, title: "Unknown job type" },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Method not allowed" },
  conflict: { status: 409, title: "Conflict with the current state" },
  lease_lost: { status: 409, title: "Lease lost" },
  already_settled: { status: 409, title: "Already settled by this lease" },
  idempotency_conflict: { status: 422, title: "Idempotency key used for a different request" },
  database_unavailable: { status: 503, title: "Database unreachable", retryAfterSeconds: 5 },
  database_not_neon: {
    status: 503,
    title: "Database does not speak Neon's protocol",
    retryAfterSeconds: 30,
  },
  database_cached: { status: 503, title: "A cache answers for the database", retryAfterSeconds: 30 },
  database_read_only: { status: 503, title: "Database is read-only", retryAfterSeconds: 5 },
  database_full: { status: 503, title: "Database disk is full", retryAfterSeconds: 30 },
  database_failing: { status: 503, title: "Database server failure", retryAfterSeconds: 10 },
  database_busy: { status: 503, title: "Database is busy", retryAfterSeconds: 1 },
  schema_outdated: { status: 503, title: "Schema missing or too old", retryAfterSeconds: 30 },
  queue_full: { status: 429, title: "Queue is full", retryAfterSeconds: 1 },
  too_many_workers: { status: 429, title: "Too many live workers", retryAfterSeconds: 30 },
  rate_limited: { status: 429, title: "Rate limit exceeded", retryAfterSeconds: 1 },
  access_unavailable: { status: 503, title: "Cloudflare Access unreachable", retryAfterSeconds: 5 },
  page_too_slow: { status: 503, title: "This took too long", retryAfterSeconds: 30 },
  internal: { status: 500, title: "Internal error" },
};

/** `request` is for the log. */
export function problemResponse(error: unknown, request: Logged = {}, log: Log = consoleLog): Response {
  const { body, headers } = problemOf(error, request, log);
  headers.set("content-type", "application/problem+json");
  if (body.status === 401) headers.set("www-authenticate", "Bearer");
  return new Response(JSON.stringify(body), { status: body.status, headers });
}

interface Logged {
  method?: string;
  route?: string;
}

/** What a caller may know of the error, and when to try again. The log gets the rest. */
export function problemOf(
  error: unknown,
  request: Logged,
  log: Log = consoleLog,
): { body: Problem; headers: Headers } {
  const problemError =
    error instanceof SluiceError
      ? error
      : new SluiceError("internal", "an unexpected error; the Worker's log has the details", {
          cause: error,
        });
  const { status, title, retryAfterSeconds } = problems[problemError.code];
  if (status >= 500) logProblem(problemError, request, log);
  const body: Problem = {
    type: `urn:sluice:problem:${problemError.code}`,
    title,
    status,
    detail: problemError.message,
    ...(problemError.faults.length > 0 ? { errors: [...problemError.faults] } : {}),
  };
  const seconds = problemError.retryAfterSeconds ?? retryAfterSeconds;
  return { body, headers: new Headers(seconds ? { "retry-after": String(seconds) } : {}) };
}

export const onError = (error: Error, context: Context<AppEnv>): Response =>
  problemResponse(
    error,
    { method: context.req.method, route: routePath(context, -1) },
    context.env.ports.log,
  );

function logProblem({ code, message, cause }: SluiceError, request: object, log: Log): void {
  const reason = cause instanceof Error ? cause : undefined;
  log.error("request failed", {
    ...request,
    code,
    ...(reason && describeError(reason)),
    ...(code === "internal" && reason ? {} : { message }),
    cause: reason && causeText(reason),
  });
}

/** The stack of the error and of its causes. */
export function causeText(error: Error): string {
  const text = error.stack ?? error.message;
  return error.cause instanceof Error ? `${text}\ncaused by: ${causeText(error.cause)}` : text;
}
