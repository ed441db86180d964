// A nudge starts a drain right after an enqueue, in the same invocation but after the response, so that the job does not
// wait for the cron. A nudge that is lost costs only time: the cron finds the job.
import { describeError } from "../core/database-errors.ts";
import { claimingEnd, type DrainBudget, nudgeBudget, type Plan } from "../core/policy/drain-budget.ts";
import type { DrainOptions } from "../queue/drain/drain-state.ts";
import type { Ports } from "../queue/ports.ts";
import { drainAndRecord } from "../queue/rounds.ts";
import type { IsolateState } from "./isolate-state.ts";

const longestNudgeMs = 30_000;
/** A handler that ends within this time counts as quick. */
const quickHandlerMs = 50;

export interface Nudge {
  ports: Ports;
  name: string;
  plan: Plan;
  /** The requests of an isolate share this map, so that a burst of enqueues makes one drain. */
  nudges: IsolateState["nudges"];
  waitUntil(work: Promise<unknown>): void;
}

export function nudge(options: Nudge): void {
  const { ports, name, nudges } = options;
  const running = nudges.get(name);
  if (running && ports.clock.nowMs() < running.untilMs) {
    running.isAskedAgain = true;
    return;
  }
  nudges.set(name, { untilMs: ports.clock.nowMs() + longestNudgeMs, isAskedAgain: false });
  options.waitUntil(drainWhileNudged(options));
}

/** Drains again if there were further enqueues meanwhile. The next drain may start while the last handlers still run. */
async function drainWhileNudged({ ports, name, plan, nudges }: Nudge): Promise<void> {
  const budget = nudgeBudget(plan);
  const startedMs = ports.clock.nowMs();
  const spent = { subrequests: 0 };
  const rounds: Promise<void>[] = [];
  for (;;) {
    nudges.set(name, { untilMs: startedMs + longestNudgeMs, isAskedAgain: false });
    const elapsedMs = ports.clock.nowMs() - startedMs;
    if (claimingEnd(budget, { elapsedMs, ...spent })) break;
    spent.subrequests++; // the round's record
    const round = startRound(ports, name, { budget: budgetAfter(budget, elapsedMs), spent });
    rounds.push(round.ended);
    await round.quick;
    if (!nudges.get(name)?.isAskedAgain) break;
  }
  nudges.delete(name);
  await Promise.all(rounds);
}

/** `quick` resolves when the claims have ended and quick handlers too, so that a burst of enqueues makes few drains. */
function startRound(ports: Ports, name: string, options: Pick<DrainOptions, "budget" | "spent">) {
  const claimed = Promise.withResolvers<void>();
  const drain = { kind: "nudge", queue: name, ...options, onClaimed: claimed.resolve } as const;
  const ended = drainAndRecord(ports, drain).then(
    () => {},
    (error: unknown) => ports.log.warn("nudge failed", { queue: name, ...describeError(error) }),
  );
  const quickHandlers = claimed.promise.then(() => ports.clock.sleep(quickHandlerMs));
  return { ended, quick: Promise.race([ended, quickHandlers]) };
}

function budgetAfter(budget: DrainBudget, elapsedMs: number): DrainBudget {
  return {
    ...budget,
    claimForMs: budget.claimForMs - elapsedMs,
    hardEndMs: budget.hardEndMs - elapsedMs,
  };
}
