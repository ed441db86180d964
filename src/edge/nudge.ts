// A nudge starts a drain right after an enqueue, in the same invocation but after the response, so that the job does not
// wait for the cron. A nudge that is lost costs only time: the cron finds the job.
//
// The platform allows 30 s after a response. Jobs of types that may take longer are left to the clock: what it starts is an
// invocation with a budget of minutes. Without a clock they wait for the cron.
import { describeError } from "../core/database-errors.ts";
import {
  claimingEnd,
  type DrainBudget,
  fitsBeforeEnd,
  nudgeBudget,
  type Plan,
} from "../core/policy/drain-budget.ts";
import type { DrainOptions } from "../queue/drain/drain-state.ts";
import type { JobType, Ports } from "../queue/ports.ts";
import { drainAndRecord } from "../queue/rounds.ts";
import type { IsolateState } from "./isolate-state.ts";
import type { Settings } from "./settings/env.ts";

const longestNudgeMs = 30_000;
/** A handler that ends within this time counts as quick. */
const quickHandlerMs = 50;

export interface Nudge {
  ports: Ports;
  name: string;
  plan: Plan;
  /** Some of the new jobs may be due later. */
  asksDue: boolean;
  /** The requests of an isolate share this map, so that a burst of enqueues makes one drain. */
  nudges: IsolateState["nudges"];
  waitUntil(work: Promise<unknown>): void;
}

interface StartDrain extends Pick<Nudge, "ports" | "name" | "waitUntil"> {
  settings: Settings;
  isolate: IsolateState;
  /** The types that got jobs. Undefined: any, and some may be due later. */
  types: readonly string[] | undefined;
}

export function startDrainOf({
  settings: { plan },
  isolate: { nudges },
  types,
  ...options
}: StartDrain): void {
  const { registry, wakeIn } = options.ports;
  const nudged = registry
    .all()
    .filter(({ type, work }) => work.kind !== "pulled" && (types?.includes(type) ?? true));
  const fits = ({ timeoutSeconds }: JobType) =>
    fitsBeforeEnd(nudgeBudget(plan), { elapsedMs: 0, timeoutSeconds });
  if (!nudged.every(fits)) wakeIn(0);
  if (types === undefined || nudged.some(fits))
    nudge({ ...options, plan, nudges, asksDue: types === undefined });
}

function nudge(options: Nudge): void {
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
async function drainWhileNudged({ ports, name, plan, asksDue, nudges }: Nudge): Promise<void> {
  const budget = nudgeBudget(plan);
  const startedMs = ports.clock.nowMs();
  const spent = { subrequests: 0 };
  const rounds: Promise<void>[] = [];
  for (;;) {
    nudges.set(name, { untilMs: startedMs + longestNudgeMs, isAskedAgain: false });
    const elapsedMs = ports.clock.nowMs() - startedMs;
    if (claimingEnd(budget, { elapsedMs, ...spent })) break;
    spent.subrequests++; // the round's record
    const round = startRound(ports, name, { budget: budgetAfter(budget, elapsedMs), spent, asksDue });
    rounds.push(round.ended);
    await round.quick;
    if (!nudges.get(name)?.isAskedAgain) break;
  }
  nudges.delete(name);
  await Promise.all(rounds);
}

/** `quick` resolves when the claims have ended and quick handlers too, so that a burst of enqueues makes few drains. */
function startRound(
  ports: Ports,
  name: string,
  options: Pick<DrainOptions, "budget" | "spent"> & { asksDue: boolean },
) {
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
