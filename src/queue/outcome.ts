// What an error that a handler threw means for its job.
import { FatalError, RetryableError, Snooze } from "../core/errors.ts";
import type { Outcome } from "../core/job.ts";

/** Without a time of its own a retry waits for the type's backoff. */
export function outcomeOf(error: unknown): Outcome {
  if (error instanceof Snooze) return { kind: "snooze", retryInSeconds: error.seconds };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof FatalError) return { kind: "bury", message };
  return {
    kind: "retry",
    message,
    retryInSeconds: error instanceof RetryableError ? error.retryInSeconds : undefined,
  };
}
