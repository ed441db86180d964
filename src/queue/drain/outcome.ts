// What an error that a handler threw means for its job, and what is kept of it.
import { CancelledError, FatalError, RetryableError, Snooze, Suspension } from "../../core/errors.ts";
import type { ErrorCause, ErrorDetail, Outcome } from "../../core/job.ts";
import { storableText, textOf } from "./storable.ts";

/** A year: later than any job lives, and a time that Postgres can reckon with. */
const maxWaitSeconds = 31_536_000;
const maxMessageCharacters = 4000;
/** About 8 KB in all. */
const maxStackCharacters = 3000;
const maxCauses = 4;
const maxCauseMessageCharacters = 300;
const maxCauseStackCharacters = 900;

/** Never throws, whatever the handler threw. Without a time of its own a retry waits for the type's backoff. */
export function outcomeOf(error: unknown): Outcome {
  if (error instanceof Snooze) {
    const retryInSeconds = waitSeconds(error.seconds);
    if (retryInSeconds !== undefined) return { kind: "snooze", retryInSeconds };
  }
  if (error instanceof Suspension) return error.outcome;
  // The settle finds the request and ends the job as cancelled.
  if (error instanceof CancelledError) return { kind: "release" };
  const message = storableText(textOf(error), maxMessageCharacters);
  const detail = detailOf(error);
  if (error instanceof FatalError) return { kind: "bury", message, detail };
  const retryInSeconds = error instanceof RetryableError ? waitSeconds(error.retryInSeconds) : undefined;
  return { kind: "retry", message, detail, retryInSeconds };
}

function waitSeconds(seconds: number | undefined): number | undefined {
  const isTime = typeof seconds === "number" && !Number.isNaN(seconds);
  return isTime ? Math.min(Math.max(seconds, 0), maxWaitSeconds) : undefined;
}

function detailOf(error: unknown): ErrorDetail {
  return { stack: stackOf(error, maxStackCharacters), causes: causesOf(error) };
}

/** What it was made from, the nearest first; of several errors at once, each. */
function causesOf(error: unknown): ErrorCause[] {
  const causes: ErrorCause[] = [];
  const seen = new Set([error]);
  const next = madeFrom(error);
  while (next.length > 0 && causes.length < maxCauses) {
    const cause = next.shift();
    if (seen.has(cause)) continue;
    seen.add(cause);
    next.push(...madeFrom(cause));
    causes.push({
      message: storableText(textOf(cause), maxCauseMessageCharacters),
      stack: stackOf(cause, maxCauseStackCharacters),
    });
  }
  return causes;
}

function madeFrom(error: unknown): unknown[] {
  try {
    const errors = error instanceof AggregateError ? error.errors.slice(0, maxCauses) : [];
    return error instanceof Error && error.cause !== undefined ? [...errors, error.cause] : errors;
  } catch {
    return [];
  }
}

function stackOf(error: unknown, maxCharacters: number): string | null {
  try {
    const stack = error instanceof Error ? error.stack : undefined;
    return typeof stack === "string" ? storableText(stack, maxCharacters) : null;
  } catch {
    return null;
  }
}
