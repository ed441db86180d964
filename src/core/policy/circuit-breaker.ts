// When a type's breaker opens: most of its attempts fail, and there were enough of them to say so. An open breaker lets
// one job through at a time, to see, and a closed one a few at first; the database keeps its state.

export interface Attempts {
  completed: number;
  failed: number;
}

export interface BreakerPolicy {
  minAttempts: number;
  maxFailureRate: number;
}

export const defaultBreaker: BreakerPolicy = { minAttempts: 20, maxFailureRate: 0.8 };
/** Of a type whose breaker has just closed: its first step tells. */
export const trialBreaker: BreakerPolicy = { minAttempts: 4, maxFailureRate: 0.8 };
/** The window is kept by the database: see migrations/functions/breaker.sql. */
export const breakerWindowMinutes = 5;

export function shouldOpen({ completed, failed }: Attempts, policy: BreakerPolicy = defaultBreaker): boolean {
  const attempts = completed + failed;
  return attempts >= policy.minAttempts && failed / attempts > policy.maxFailureRate;
}
