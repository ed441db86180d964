// The drain round: claim a batch, run it, settle it, and again while there is more and the budget allows.
import type { ClaimedJob, Settlement } from "../core/job.ts";
import {
  cronBudget,
  type DrainBudget,
  type DrainEnd,
  drainEnd,
  subrequestsPerBatch,
} from "../core/policy/drain-budget.ts";
import { claim, settle } from "../core/sql/index.ts";
import type { Queue } from "./ports.ts";
import { runJob } from "./run-job.ts";

/** A job's lease is this much longer than its handler may run, so that a slow settle still finds it held. */
const leaseMarginSeconds = 60;

export interface DrainReport {
  claimed: number;
  settled: number;
  end: DrainEnd;
}

export async function drain(queue: Queue, budget: DrainBudget = cronBudget): Promise<DrainReport> {
  const startedMs = queue.clock.nowMs();
  const report = { claimed: 0, settled: 0 };
  let subrequests = 0;
  for (;;) {
    let hasMore = false;
    for (const pool of pools(queue, budget)) {
      const rows = await queue.db.run(claim({ ...pool, limit: budget.batchSize }));
      const jobs = rows.map((row) => row.job);
      report.claimed += jobs.length;
      report.settled += await settleAll(queue, await runAll(queue, jobs));
      subrequests += subrequestsPerBatch;
      hasMore ||= rows.some((row) => row.hasMore);
    }
    const end = drainEnd(budget, {
      elapsedMs: queue.clock.nowMs() - startedMs,
      subrequests,
      hasMore,
    });
    if (end) return { ...report, end };
  }
}

/** One claim for each queue that a registered type works in. */
function pools(queue: Queue, budget: DrainBudget) {
  const fitting = queue.registry
    .all()
    .filter((handler) => handler.timeoutSeconds <= budget.maxTimeoutSeconds);
  const byQueue = Map.groupBy(fitting, (handler) => handler.queue);
  return [...byQueue].map(([name, handlers]) => ({
    queue: name,
    types: handlers.map((handler) => handler.type),
    leaseSeconds: Math.max(...handlers.map((handler) => handler.timeoutSeconds)) + leaseMarginSeconds,
  }));
}

function runAll(queue: Queue, jobs: readonly ClaimedJob[]): Promise<Settlement[]> {
  return Promise.all(jobs.map(async (job) => ({ job, outcome: await runJob(queue, job) })));
}

async function settleAll(queue: Queue, settlements: readonly Settlement[]): Promise<number> {
  if (settlements.length === 0) return 0;
  const settled = await queue.db.run(settle(settlements));
  const lost = settled.filter((settlement) => !settlement.applied).map((settlement) => settlement.id);
  if (lost.length > 0) queue.log.warn("lease lost", { jobs: lost });
  return settled.length - lost.length;
}
