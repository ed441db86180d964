// Direct is fast, periodic is reliable: after an enqueue a drain of its queue starts at once, in the same invocation but
// after the response. A lost nudge costs nothing but time, the cron finds the job.
import { describeError } from "../core/database-errors.ts";
import { claimingEnd, type DrainBudget, nudgeBudget, type Plan } from "../core/policy/drain-budget.ts";
import type { DrainOptions } from "../queue/drain/drain.ts";
import type { Ports } from "../queue/ports.ts";
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
  ports: Ports;
  name: string;
  plan: Plan;
  waitUntil(work: Promise<unknown>): void;
}

export function nudge({ ports, name, plan, waitUntil }: Nudge): void {
  const running = drains.get(name);
  if (running && ports.clock.nowMs() < running.untilMs) {
    running.isAskedAgain = true;
    return;
  }
  drains.set(name, { untilMs: ports.clock.nowMs() + longestNudgeMs, isAskedAgain: false });
  waitUntil(drainUntilQuiet(ports, name, plan));
}

/** Goes on while others ask; once its claims are over it holds nobody back, though its last handlers may run on. */
async function drainUntilQuiet(ports: Ports, name: string, plan: Plan): Promise<void> {
  const budget = nudgeBudget(plan);
  const startedMs = ports.clock.nowMs();
  const spent = { subrequests: 0 };
  const rounds: Promise<void>[] = [];
  for (;;) {
    drains.set(name, { untilMs: startedMs + longestNudgeMs, isAskedAgain: false });
    const elapsedMs = ports.clock.nowMs() - startedMs;
    if (claimingEnd(budget, { elapsedMs, ...spent })) break;
    spent.subrequests++; // the round's record
    const round = startRound(ports, name, { budget: budgetAfter(budget, elapsedMs), spent });
    rounds.push(round.ended);
    await round.quick;
    if (!drains.get(name)?.isAskedAgain) break;
  }
  drains.delete(name);
  await Promise.all(rounds);
}

/** `quick` waits for its handlers too, if they are quick: so a burst of enqueues makes few drains. */
function startRound(ports: Ports, name: string, options: Pick<DrainOptions, "budget" | "spent">) {
  const claimed = Promise.withResolvers<void>();
  const ended = drainRound(ports, { kind: "nudge", name, ...options, onClaimed: claimed.resolve }).then(
    () => {},
    (error: unknown) => ports.log.warn("nudge failed", { queue: name, ...describeError(error) }),
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
