// Direct is fast, periodic is reliable: after an enqueue a drain of its queue starts at once, in the same invocation but
// after the response. A lost nudge costs nothing but time, the cron finds the job.
import { claimingEnd, type DrainBudget, nudgeBudget, type Plan } from "../core/policy/drain-budget.ts";
import type { DrainOptions } from "../queue/drain.ts";
import type { Queue } from "../queue/ports.ts";
import { drainRound } from "../queue/rounds.ts";

/**
 * Plain data, shared by the requests of an isolate, so that a burst of enqueues makes one drain. No promise is
 * shared: one that belongs to another request never settles once that request is over. The time bounds the flag,
 * since an invocation that was cut off cannot clear it.
 */
const drains = new Map<string, { untilMs: number; isAskedAgain: boolean }>();
const longestNudgeMs = 30_000;
/** How long handlers may take to count as quick. */
const patienceMs = 50;

export interface Nudge {
  queue: Queue;
  name: string;
  plan: Plan;
  waitUntil(work: Promise<unknown>): void;
}

export function nudge({ queue, name, plan, waitUntil }: Nudge): void {
  const running = drains.get(name);
  if (running && queue.clock.nowMs() < running.untilMs) {
    running.isAskedAgain = true;
    return;
  }
  drains.set(name, { untilMs: queue.clock.nowMs() + longestNudgeMs, isAskedAgain: false });
  waitUntil(drainUntilQuiet(queue, name, plan));
}

/** Goes on while others ask; once its claims are over it holds nobody back, though its last handlers may run on. */
async function drainUntilQuiet(queue: Queue, name: string, plan: Plan): Promise<void> {
  const budget = nudgeBudget(plan);
  const startedMs = queue.clock.nowMs();
  const spent = { subrequests: 0 };
  const rounds: Promise<void>[] = [];
  for (;;) {
    drains.set(name, { untilMs: startedMs + longestNudgeMs, isAskedAgain: false });
    const elapsedMs = queue.clock.nowMs() - startedMs;
    if (claimingEnd(budget, { elapsedMs, ...spent })) break;
    spent.subrequests++; // the round's record
    const round = startRound(queue, name, { budget: budgetAfter(budget, elapsedMs), spent });
    rounds.push(round.ended);
    await round.quick;
    if (!drains.get(name)?.isAskedAgain) break;
  }
  drains.delete(name);
  await Promise.all(rounds);
}

/** `quick` waits for its handlers too, if they are quick: so a burst of enqueues makes few drains. */
function startRound(queue: Queue, name: string, options: Pick<DrainOptions, "budget" | "spent">) {
  const claimed = Promise.withResolvers<void>();
  const ended = drainRound(queue, { kind: "nudge", name, ...options, onClaimed: claimed.resolve }).then(
    () => {},
    (error: Error) => queue.log.warn("nudge failed", { queue: name, message: error.message }),
  );
  const patience = claimed.promise.then(
    () => new Promise<void>((resolve) => setTimeout(resolve, patienceMs)),
  );
  return { ended, quick: Promise.race([ended, patience]) };
}

function budgetAfter(budget: DrainBudget, elapsedMs: number): DrainBudget {
  return {
    ...budget,
    claimForMs: budget.claimForMs - elapsedMs,
    hardEndMs: budget.hardEndMs - elapsedMs,
  };
}
