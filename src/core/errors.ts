// All errors. A caller may act on the code, which is stable. The message is for people.
import type { Outcome } from "./job.ts";

export type ErrorCode =
  | "settings_invalid"
  | "request_invalid"
  | "body_too_large"
  | "body_not_json"
  | "unauthorized"
  | "forbidden"
  | "type_unknown"
  | "not_found"
  | "method_not_allowed"
  | "conflict"
  | "idempotency_conflict"
  | "lease_lost"
  | "already_settled"
  | DatabaseErrorCode
  | "rate_limited"
  | "queue_full"
  | "too_many_workers"
  | "access_unavailable"
  | "page_too_slow"
  | "internal";

/** The database cannot do the work now. Each code calls for another reaction. */
export type DatabaseErrorCode =
  | "database_unavailable"
  | "database_not_neon"
  | "database_cached"
  | "database_read_only"
  | "database_full"
  | "database_failing"
  | "database_busy"
  | "schema_outdated";

export interface Fault {
  path: string;
  message: string;
}

export class SluiceError extends Error {
  readonly code: ErrorCode;
  readonly faults: readonly Fault[];
  /** When to try again, if that differs from the default of its code. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { faults?: readonly Fault[]; cause?: unknown; retryAfterSeconds?: number } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = "SluiceError";
    this.code = code;
    this.faults = options.faults ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Thrown by a handler: retry the job, after `retryInSeconds` or else after the type's backoff. */
export class RetryableError extends Error {
  readonly retryInSeconds: number | undefined;

  constructor(message: string, options: { retryInSeconds?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = "RetryableError";
    this.retryInSeconds = options.retryInSeconds;
  }
}

/** Thrown by a handler: no later attempt can succeed. The job is dead at once. */
export class FatalError extends Error {
  override readonly name = "FatalError";
}

/** Why a handler's signal is aborted: another worker may have the job, and nothing that this handler does now counts. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
}

/** Why a handler's signal is aborted: somebody cancelled the job. Nothing of it is retried. */
export class CancelledError extends Error {
  override readonly name = "CancelledError";
}

/** How the attempt of a job with durable steps ends when the job has to wait, or has no time left. No handler sees it thrown. */
export class Suspension extends Error {
  override readonly name = "Suspension";
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    super("the job goes on in a later invocation");
    this.outcome = outcome;
  }
}

/** Thrown by a handler: run the job later. No attempt is used. */
export class Snooze extends Error {
  override readonly name = "Snooze";
  readonly seconds: number;

  constructor(seconds: number) {
    super(`snoozed for ${seconds} s`);
    this.seconds = seconds;
  }
}
