// What one drain may spend. An invocation is short, counts its subrequests, and shares 128 MB with others; and what it
// claims it has to settle itself. So claiming stops early, and nothing is started that could outlast the hard end.

export interface DrainBudget {
  /** No claim after this. */
  claimForMs: number;
  /** The invocation is over: no handler may run past it. */
  hardEndMs: number;
  /** All outgoing requests: statements and what handlers send. */
  subrequests: number;
  /** Handlers at one time. */
  inFlight: number;
  /** Of payloads, for each claim. */
  payloadBytes: number;
  maxBatch: number;
}

/** A plan's number of subrequests, less what the round itself needs at its begin and end. */
export const planSubrequests = { free: 50 - 6, paid: 1000 - 6 } as const;
export type Plan = keyof typeof planSubrequests;

const common = { inFlight: 200, payloadBytes: 4 * 1024 * 1024, maxBatch: 100 };

/** A cron may run for 15 minutes; a new version of the Worker leaves it 30 s. */
export function cronBudget(plan: Plan): DrainBudget {
  return { ...common, claimForMs: 25_000, hardEndMs: 14 * 60_000, subrequests: planSubrequests[plan] };
}

/** After a response the platform leaves 30 s. */
export function nudgeBudget(plan: Plan): DrainBudget {
  return { ...common, claimForMs: 10_000, hardEndMs: 28_000, subrequests: planSubrequests[plan] };
}

export type DrainEnd = "empty" | "time" | "subrequests" | "error";

/** A claim needs itself, a settle, and one more settle for what runs on. */
const subrequestsForABatch = 3;

export function claimingEnd(
  budget: DrainBudget,
  spent: { elapsedMs: number; subrequests: number },
): Exclude<DrainEnd, "empty" | "error"> | null {
  if (spent.elapsedMs >= budget.claimForMs) return "time";
  return hasSubrequests(budget, spent) ? null : "subrequests";
}

/** For one more batch. What is left otherwise is for settling what runs. */
export function hasSubrequests(budget: DrainBudget, spent: { subrequests: number }): boolean {
  return spent.subrequests + subrequestsForABatch <= budget.subrequests;
}

/** What a drain needs at least, with the record of its round. */
const subrequestsForADrain = subrequestsForABatch + 1;

/** How many drains an invocation can pay for. */
export function drainsThatFit(budget: DrainBudget): number {
  return Math.floor(budget.subrequests / subrequestsForADrain);
}

/** Queues that are drained in one invocation share what it may spend. */
export function shareOf(budget: DrainBudget, { drains }: { drains: number }): DrainBudget {
  if (drains <= 1) return budget;
  return {
    ...budget,
    subrequests: Math.floor(budget.subrequests / drains) - 1,
    inFlight: Math.ceil(budget.inFlight / drains),
    payloadBytes: Math.floor(budget.payloadBytes / drains),
  };
}

/** A handler is started only if its time-out fits before the hard end. */
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
 * How many to claim next: what can be run in the time left for claiming, judged by the last batch, and never more than
 * twice as many as that; at most what there is room for in memory and among the subrequests.
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
