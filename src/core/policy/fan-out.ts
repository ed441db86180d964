// How many drains to start for a queue: one for each share of its backlog, at least one, and at most the limit.

export interface FanOut {
  jobsPerDrain: number;
  maxDrains: number;
}

export const defaultFanOut: FanOut = { jobsPerDrain: 500, maxDrains: 4 };

/** Cloudflare allows 32 invocations in a chain. The cron's own is one of them. */
export const maxInvocations = 30;

/**
 * The queue of each drain of a round. Every queue gets its first drain before any queue gets a second one, so that a large
 * backlog does not push other queues out.
 */
export function drainsOfRound(
  waiting: readonly { queue: string; due: number }[],
  fanOut: FanOut,
  { limit }: { limit: number },
): string[] {
  const turns = Array.from({ length: fanOut.maxDrains }, (_, turn) =>
    waiting.filter(({ due }) => drainsFor(due, fanOut) > turn).map(({ queue }) => queue),
  );
  return turns.flat().slice(0, limit);
}

export function drainsFor(waiting: number, { jobsPerDrain, maxDrains }: FanOut): number {
  if (waiting <= 0) return 0;
  return Math.min(Math.ceil(waiting / jobsPerDrain), maxDrains);
}
