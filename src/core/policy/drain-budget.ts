// What one drain may use up. An invocation is short, has a limited number of subrequests, and shares 128 MB with others.
// It must settle what it claims. So it stops claiming early, and starts no handler that could run past the hard end.

export interface DrainBudget {
  /** No claim after this. */
  claimForMs: number;
  /** The end of the invocation. No handler may run past it. */
  hardEndMs: number;
  /** All outgoing requests: statements, and what handlers send. */
  subrequests: number;
  /** How many handlers run at one time. */
  inFlight: number;
  /** The size of all payloads of one claim. */
  payloadBytes: number;
  maxBatch: number;
}

/** A plan's number of subrequests, minus what the round itself needs at its start and end. */
export const planSubrequests = { free: 50 - 6, paid: 10_000 - 6 } as const;
export type Plan = keyof typeof planSubrequests;

const common = { inFlight: 200, payloadBytes: 4 * 1024 * 1024, maxBatch: 100 };

/** A cron invocation may run for 15 minutes. A deploy of a new version gives it 30 s. */
export function cronBudget(plan: Plan): DrainBudget {
  return { ...common, claimForMs: 25_000, hardEndMs: 14 * 60_000, subrequests: planSubrequests[plan] };
}

/** The platform allows 30 s after a response. */
export function nudgeBudget(plan: Plan): DrainBudget {
  return { ...common, claimForMs: 10_000, hardEndMs: 28_000, subrequests: planSubrequests[plan] };
}

export type DrainEnd = "empty" | "time" | "subrequests" | "error";

/** A claim needs one for itself, one for a settle, and one more settle for jobs that run longer. */
const subrequestsForABatch = 3;

export function claimingEnd(
  budget: DrainBudget,
  spent: { elapsedMs: number; subrequests: number },
): Exclude<DrainEnd, "empty" | "error"> | null {
  if (spent.elapsedMs >= budget.claimForMs) return "time";
  return hasSubrequests(budget, spent) ? null : "subrequests";
}

/** Whether there are enough for one more batch. The rest is kept for settling running jobs. */
export function hasSubrequests(budget: DrainBudget, spent: { subrequests: number }): boolean {
  return spent.subrequests + subrequestsForABatch <= budget.subrequests;
}

/** Whether a statement may be sent that is not needed for settling: a fifth of all is kept. */
export function hasStatementsToSpare(budget: DrainBudget, spent: { subrequests: number }): boolean {
  return hasSubrequests(budget, { subrequests: spent.subrequests + budget.subrequests / 5 });
}

/** The minimum that a drain needs, with the record of its round. */
const subrequestsForADrain = subrequestsForABatch + 1;

/** How many drains an invocation can pay for. */
export function drainsThatFit(budget: DrainBudget): number {
  return Math.floor(budget.subrequests / subrequestsForADrain);
}

/** Queues that are drained in one invocation share its budget. */
export function shareOf(budget: DrainBudget, { drains }: { drains: number }): DrainBudget {
  if (drains <= 1) return budget;
  return {
    ...budget,
    subrequests: Math.floor(budget.subrequests / drains) - 1,
    inFlight: Math.ceil(budget.inFlight / drains),
    payloadBytes: Math.floor(budget.payloadBytes / drains),
  };
}

/** A handler starts only if its time-out ends before the hard end. */
export function fitsBeforeEnd(
  budget: DrainBudget,
  work: { elapsedMs: number; timeoutSeconds: number },
): boolean {
  return work.elapsedMs + work.timeoutSeconds * 1000 <= budget.hardEndMs;
}

export interface Pace {
  jobs: number;
  ms: number;
}

/**
 * How many jobs to claim next. It estimates from the last batch how many can run in the time left, and never takes more
 * than twice as many as last time. Memory and subrequests limit it too.
 */
export function nextBatchSize(
  budget: DrainBudget,
  state: {
    elapsedMs: number;
    inFlight: number;
    subrequests: number;
    subrequestsPerJob: number;
    last: Pace | null;
  },
): number {
  const room = budget.inFlight - state.inFlight;
  const spare = budget.subrequests - state.subrequests - subrequestsForABatch;
  const payable =
    state.subrequestsPerJob > 0 ? Math.floor(spare / state.subrequestsPerJob) : Number.POSITIVE_INFINITY;
  const size = Math.min(room, payable, budget.maxBatch, byPace(budget, state.elapsedMs, state.last));
  return Math.max(0, Math.floor(size));
}

function byPace(budget: DrainBudget, elapsedMs: number, last: Pace | null): number {
  if (!last || last.jobs === 0) return budget.maxBatch;
  const leftMs = Math.max(budget.claimForMs - elapsedMs, 0);
  const possible = (last.jobs * leftMs) / Math.max(last.ms, 1);
  return Math.max(1, Math.min(possible, last.jobs * 2));
}
