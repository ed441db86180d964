// Runs over dead letters: takes some steps of those that may go on. Each step is a statement of its own, and all that a run knows is
// in the database. So it does not matter who takes the steps, and a step that is lost is taken by the next one who comes.
import type { Skip } from "../core/dead-letters.ts";
import type { Plan } from "../core/policy/drain-budget.ts";
import type { PatchedJobs } from "../core/sql/advance-dead-runs.ts";
import { advanceDeadRun, advanceDeadRuns } from "../core/sql/index.ts";
import type { Ports } from "./ports.ts";

/** What one call does at most. The clock, or the next cron, comes back for the rest. Few subrequests are left on the free plan. */
const statementsPerCall = { free: 2, paid: 20 } as const;
const callMs = 3_000;

/** How far ahead a step plans: somebody comes again after that time. */
export function secondsBetweenSteps({ hasClock }: Pick<Ports, "hasClock">): number {
  return hasClock ? 1 : 60;
}

/** Answers with the queues that got jobs. */
export async function advanceRuns(ports: Ports, plan: Plan): Promise<string[]> {
  const endMs = ports.clock.nowMs() + callMs;
  const queues = new Set<string>();
  // A step is two statements at most.
  for (let spent = 0; spent < statementsPerCall[plan] && ports.clock.nowMs() < endMs; spent += 2) {
    const step = await takeStep(ports);
    if (step === null) break;
    for (const queue of step) queues.add(queue);
  }
  return [...queues];
}

/** Null: no run may go on now. */
async function takeStep(ports: Ports): Promise<readonly string[] | null> {
  const seconds = secondsBetweenSteps(ports);
  const step = await ports.db.run(advanceDeadRuns({ seconds }));
  if (!step?.check) return step?.queues ?? null;
  const { ahead } = step.check;
  const skips = findSkips(ports, step.check);
  const taken = await ports.db.run(advanceDeadRun(step.runId, { seconds, ahead, skips }));
  return taken?.queues ?? [];
}

/** Only the type's own schema can check a payload, so a patch is checked here. */
function findSkips({ registry }: Ports, { type, jobs }: PatchedJobs): Skip[] {
  const definition = registry.find(type);
  return jobs.flatMap(({ id, payload, fault }) => {
    const faults = definition
      ?.faultsOf(payload)
      .map(({ path, message }) => `${path || "payload"}: ${message}`);
    const reason = fault ?? (faults ? faults.join("; ") : `the type "${type}" is not registered`);
    return reason ? [{ jobId: id, reason: reason.slice(0, 500) }] : [];
  });
}
