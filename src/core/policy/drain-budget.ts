// When a drain may claim once more. An invocation is short and counts its subrequests, and what was
// claimed has to be settled in the same one: claiming stops while there is still time for that.

export interface DrainBudget {
  claimForMs: number;
  subrequests: number;
  batchSize: number;
  /** Types that may take longer are left to a drain that has the time. */
  maxTimeoutSeconds: number;
}

/** A cron may run for 15 minutes. */
export const cronBudget: DrainBudget = {
  claimForMs: 25_000,
  subrequests: 40,
  batchSize: 100,
  maxTimeoutSeconds: 840,
};
/** After a response the platform leaves 30 s: claim for 10, and run nothing that could outlast the rest. */
export const nudgeBudget: DrainBudget = {
  claimForMs: 10_000,
  subrequests: 40,
  batchSize: 100,
  maxTimeoutSeconds: 15,
};

/** A batch costs one subrequest to claim and one to settle. */
export const subrequestsPerBatch = 2;

export type DrainEnd = "empty" | "time" | "subrequests";

export function drainEnd(
  budget: DrainBudget,
  spent: { elapsedMs: number; subrequests: number; hasMore: boolean },
): DrainEnd | null {
  if (!spent.hasMore) return "empty";
  if (spent.elapsedMs >= budget.claimForMs) return "time";
  if (spent.subrequests + subrequestsPerBatch > budget.subrequests) return "subrequests";
  return null;
}
