// How many drains a queue's backlog is worth: one for every so many waiting jobs, at least one, at most the limit.

export interface FanOut {
  jobsPerDrain: number;
  maxDrains: number;
}

export const defaultFanOut: FanOut = { jobsPerDrain: 500, maxDrains: 4 };

/** A chain has at most 32 invocations, the cron's own among them. */
export const maxInvocations = 30;

/**
 * The queue of each drain of a round. Every queue gets its first one before any gets a second, so that a large backlog
 * takes no other queue's place.
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
