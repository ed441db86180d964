// How long a failed job waits before its next attempt: min(base × 2^(attempt−1), max) + random(0, jitter).

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
