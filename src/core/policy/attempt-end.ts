// What the end of an attempt means, for drains and for pullers alike: when a failed job runs again, and what the circuit
// breaker of its type learns. Whether a failed job is dead is decided by the settle, which knows the job's maximum.
import type { ClaimedJob, Outcome } from "../job.ts";
import { type Backoff, backoffSeconds, defaultBackoff } from "./backoff.ts";

/** A retry without a time of its own waits for the backoff of its type. */
export function withRetryTime(
  outcome: Outcome,
  { attempt, backoff, random }: { attempt: number; backoff: Backoff | undefined; random: number },
): Outcome {
  if (outcome.kind !== "retry" || outcome.retryInSeconds !== undefined) return outcome;
  const counted = countedAttempt(attempt, outcome);
  return {
    ...outcome,
    retryInSeconds: backoffSeconds(backoff ?? defaultBackoff, { attempt: counted, random }),
  };
}

/** The attempt that an outcome counts for: the look of a reconciled job counts for the run before it. */
export function countedAttempt(claimedAttempt: number, outcome: Outcome): number {
  return "uses" in outcome && outcome.uses === 0 ? claimedAttempt - 1 : claimedAttempt;
}

export function isFailure(outcome: Outcome): outcome is Extract<Outcome, { message: string }> {
  return outcome.kind === "retry" || outcome.kind === "bury";
}

/**
 * What a settled attempt means for the breaker of its type. A probe that completed closes it, and a probe that failed
 * leaves it open. Any other failure is a reason to look at the recent attempts.
 */
export function breakerAction(job: Pick<ClaimedJob, "isProbe">, outcome: Outcome): "close" | "look" | "none" {
  if (job.isProbe) return outcome.kind === "complete" ? "close" : "none";
  return isFailure(outcome) ? "look" : "none";
}

/** How the attempts of one type ended of late, everywhere. */
export interface RecentAttempts {
  completed: number;
  failed: number;
  /** The breaker has closed a moment ago and lets only a few jobs through at a time. */
  isOnTrial: boolean;
}

const maxFailureRate = 0.8;
const minAttempts = 20;
/** The first step after a breaker has closed is four jobs. */
const minAttemptsOnTrial = 4;

export function shouldOpenBreaker({ completed, failed, isOnTrial }: RecentAttempts): boolean {
  const attempts = completed + failed;
  return attempts >= (isOnTrial ? minAttemptsOnTrial : minAttempts) && failed / attempts > maxFailureRate;
}
