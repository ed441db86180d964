// How long a failed job waits before its next attempt: min(base × 2^(attempt−1), max) + random(0, jitter). The formula
// stands here alone: the reaper, which works in SQL, gets its results (backoffWaits).

export interface Backoff {
  baseSeconds: number;
  maxSeconds: number;
  jitterSeconds: number;
}

export const defaultBackoff: Backoff = { baseSeconds: 30, maxSeconds: 3600, jitterSeconds: 15 };

/** `random` is in [0, 1). The jitter spreads jobs that failed together. */
export function backoffSeconds(
  backoff: Backoff,
  { attempt, random }: { attempt: number; random: number },
): number {
  const exponential = backoff.baseSeconds * 2 ** (attempt - 1);
  return Math.min(exponential, backoff.maxSeconds) + random * backoff.jitterSeconds;
}

/** No job has more. */
const mostAttempts = 20;

/** The waits after attempt 1, 2 and so on, without jitter. */
export function backoffWaits(backoff: Backoff): number[] {
  return Array.from({ length: mostAttempts }, (_, index) =>
    backoffSeconds(backoff, { attempt: index + 1, random: 0 }),
  );
}
