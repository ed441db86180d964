// The drain of one queue: claim a batch, run its handlers, settle what has ended along with the next claim, and extend
// the leases of what still runs. It goes on while there is more and the budget allows, and ends when every job that it
// claimed is settled.
import { type DrainEnd, hasSubrequests } from "../../core/policy/drain-budget.ts";
import type { Ports } from "../ports.ts";
import { claimBatch, isIsolated } from "./claim-batch.ts";
import { createDrain, type Drain, type DrainOptions } from "./drain-state.ts";
import { keepLeases, untilUpkeepMs } from "./extend-leases.ts";
import { countReleases, hasMadeJobs } from "./job-runs.ts";
import { leaveRing } from "./ring-member.ts";
import { abortJobs, listJobs, takeEnded, waitForAll, waitForAny } from "./running-jobs.ts";
import { countUnsure, type SettledCounts } from "./settle-report.ts";
import { addEnded, isInBrokenRun, settleAll } from "./unsettled-jobs.ts";

/** How long an outcome waits for others, so that they are settled together. */
const settleTogetherMs = 100;

export interface DrainReport extends SettledCounts {
  queue: string;
  claimed: number;
  /** How long a claim took on average, including what it settled. Null if there was no claim. */
  claimMs: number | null;
  end: DrainEnd;
  /** True if the end of a job has made another one, or may have released one. It may be of another queue. */
  madeJobs: boolean;
}

export async function drainQueue(ports: Ports, options: DrainOptions): Promise<DrainReport> {
  const drain = createDrain(ports, options);
  const { running, unsettled } = drain;
  for (;;) {
    await claimBatch(drain);
    if (!(await settleAll(unsettled))) drain.end = "error";
    stopBrokenRuns(drain);
    if (isIdle(drain)) drain.onClaimed?.();
    if (drain.end && hasOneToSpare(drain)) await leaveRing(drain.ports, drain.member, drain);
    if (running.series.size + running.ended.length + unsettled.jobs.length > 0) {
      await waitForOutcomes(drain);
      await keepLeases(drain.leases);
      const ended = takeEnded(running);
      addEnded(unsettled, ended);
      if (ended.some(hasMadeJobs)) goOn(drain);
    } else if (drain.end) {
      await countUnsure(drain.ports, unsettled);
      return toReport(drain, drain.end);
    } else if (drain.releasesAhead === 0) {
      await drain.ports.clock.sleep(untilNextStartMs(drain));
    }
  }
}

/** When these ends are settled there are jobs to claim, also if the last claim found no more. */
function goOn(drain: Drain): void {
  drain.madeJobs = true;
  if (drain.releasesAhead !== null)
    drain.releasesAhead = Math.max(drain.releasesAhead, countReleases(listJobs(drain.running)) + 1);
  if (drain.end === "empty") drain.end = null;
}

function stopBrokenRuns({ running, unsettled }: Drain): void {
  const broken = listJobs(running).filter((job) => isInBrokenRun(unsettled, job));
  if (broken.length > 0) abortJobs(running, broken);
}

/** The drain claims nothing before one of its jobs has ended, so others may claim meanwhile. */
function isIdle({ end, releasesAhead, running }: Drain): boolean {
  return end !== null || releasesAhead !== null || listJobs(running).some(isIsolated);
}

/**
 * Outcomes are settled together: wait for the whole batch, but not for its slowest job, unless there are hardly any
 * subrequests left to settle with.
 */
async function waitForOutcomes(drain: Drain): Promise<void> {
  const { ports, budget, spent, running, unsettled, leases, end, releasesAhead } = drain;
  const startedMs = ports.clock.nowMs();
  const hasEnded = running.ended.length + unsettled.jobs.length > 0;
  if (!hasEnded && (end !== null || releasesAhead !== null))
    await waitForAny(running, Math.min(untilUpkeepMs(leases), untilNextStartMs(drain)));
  const patienceMs = hasSubrequests(budget, spent) ? settleTogetherMs : Number.POSITIVE_INFINITY;
  await waitForAll(running, Math.min(patienceMs, untilUpkeepMs(leases)));
  if (drain.lastBatch) drain.lastBatch.ms += ports.clock.nowMs() - startedMs;
}

/** Infinite if there is no rate to wait for, or no claim to come. */
function untilNextStartMs({ ports, end, nextStartMs }: Drain): number {
  if (end !== null || nextStartMs === null) return Number.POSITIVE_INFINITY;
  return Math.max(nextStartMs - ports.clock.nowMs(), 0);
}

/** One subrequest is kept for settling. A drain that cannot leave the ring is gone 30 s after its last claim. */
function hasOneToSpare({ spent, budget }: Drain): boolean {
  return spent.subrequests + 1 < budget.subrequests;
}

function toReport({ queue, claims, unsettled, madeJobs }: Drain, end: DrainEnd): DrainReport {
  const claimMs = claims.count > 0 ? claims.ms / claims.count : null;
  return { queue, claimed: claims.jobs, ...unsettled.counts, claimMs, end, madeJobs };
}
