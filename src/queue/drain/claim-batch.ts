// Claims the next batch of a drain and starts its handlers, if there is a reason to claim and the budget allows it. What
// has completed is settled along with the claim.
import { describeError } from "../../core/database-errors.ts";
import type { ClaimedJob } from "../../core/job.ts";
import { claimingEnd, nextBatchSize } from "../../core/policy/drain-budget.ts";
import { type Claimed, claim } from "../../core/sql/claim.ts";
import type { JobType } from "../ports.ts";
import type { Drain } from "./drain-state.ts";
import { noteClaimed } from "./extend-leases.ts";
import { countReleases, releaseRun, runsOf } from "./job-runs.ts";
import { learnWorkers, ringFields } from "./ring-member.ts";
import { listJobs, startJobs } from "./running-jobs.ts";
import { addEnded, isRefusal, jobsToSettleWithClaim, markSettled } from "./unsettled-jobs.ts";

export async function claimBatch(drain: Drain): Promise<void> {
  const { ports, budget, running, spent, startedMs } = drain;
  const elapsedMs = ports.clock.nowMs() - startedMs;
  drain.end ??= claimingEnd(budget, { elapsedMs, ...spent });
  if (drain.end || mustWait(drain)) return;
  const types = typesThatFit(drain);
  const inFlight = listJobs(running).length;
  const limit = nextBatchSize(budget, {
    elapsedMs,
    inFlight,
    subrequests: spent.subrequests,
    subrequestsPerJob: Math.max(0, ...types.map((type) => type.subrequests)),
    last: drain.lastBatch,
  });
  if (types.length === 0) drain.end = "time";
  else if (limit === 0 && inFlight === 0) drain.end = "subrequests";
  else if (limit > 0) await sendClaim(drain, types, limit);
}

/** A type whose time-out does not fit before the hard end is left to a drain that has the time. */
function typesThatFit({ ports, running }: Drain): JobType[] {
  return ports.registry.all().filter((type) => type.work.kind !== "pulled" && running.canStart(type));
}

function mustWait({
  ports,
  running,
  unsettled,
  isWaitingForTrial,
  releasesAhead,
  nextStartMs,
}: Drain): boolean {
  const jobs = listJobs(running);
  // Isolated jobs may end this invocation, so no other job is claimed beside them.
  if (jobs.some(isIsolated) || (isWaitingForTrial && jobs.some(isOnTrial))) return true;
  if (releasesAhead === null || (nextStartMs !== null && ports.clock.nowMs() >= nextStartMs)) return false;
  // What an end releases can be claimed when the end is settled: with this claim, or before it.
  const areSettledWithClaim = jobsToSettleWithClaim(unsettled).length === unsettled.jobs.length;
  return !areSettledWithClaim || countReleases(jobs) >= releasesAhead;
}

async function sendClaim(drain: Drain, types: readonly JobType[], limit: number): Promise<void> {
  const { ports, queue, running, unsettled } = drain;
  const sentMs = ports.clock.nowMs();
  const settled = jobsToSettleWithClaim(unsettled);
  const keptJobs = unsettled.jobs.slice(settled.length).map(({ job }) => job);
  const releasesKept = countReleases([...listJobs(running), ...keptJobs]);
  try {
    const batch = await ports.db.run(claim(requestOf(drain, types, limit), settled));
    markSettled(unsettled, settled, batch.settled);
    learnWorkers(drain.member, batch.workers);
    startBatch(drain, batch, { sentMs, releasesKept });
  } catch (error) {
    ports.log.error("claim failed", { queue, ...describeError(error) });
    // The database may have refused what came along. That is settled by itself now, and the next claim will tell.
    if (settled.length === 0 || !isRefusal(error)) drain.end = "error";
  }
}

function requestOf(
  { ports, queue, budget, member, running }: Drain,
  types: readonly JobType[],
  limit: number,
) {
  const policy = ports.registry.policyOf(queue);
  return {
    queue,
    types,
    limit,
    leaseSeconds: Math.min(...types.map((type) => type.leaseSeconds)),
    maxBytes: budget.payloadBytes,
    takeIsolated: running.series.size === 0,
    run: policy.maxRun,
    policy,
    isDeployed: true,
    ...ringFields(member),
    ...stepFields(ports, types),
  };
}

function stepFields({ registry }: Drain["ports"], types: readonly JobType[]): { stepTypes?: string[] } {
  const stepTypes = types.map(({ type }) => type).filter((type) => registry.stepTypes.has(type));
  return stepTypes.length > 0 ? { stepTypes } : {};
}

function startBatch(
  drain: Drain,
  { jobs, hasMore, hasLinks }: Claimed,
  { sentMs, releasesKept }: { sentMs: number; releasesKept: number },
): void {
  const { ports, claims, running } = drain;
  claims.count++;
  claims.ms += ports.clock.nowMs() - sentMs;
  claims.jobs += jobs.length;
  drain.madeJobs ||= hasLinks && jobs.length > 0;
  for (const [type, ofType] of Map.groupBy(jobs, (job) => job.type)) startType(drain, type, ofType);
  drain.isWaitingForTrial = !hasMore && listJobs(running).some(isOnTrial);
  drain.releasesAhead = hasMore || drain.isWaitingForTrial ? null : releasesKept + countReleases(jobs);
  drain.nextStartMs = nextStartOf(drain, jobs);
  if (drain.releasesAhead === 0 && drain.nextStartMs === null) drain.end = "empty";
  noteClaimed(drain.leases, jobs, sentMs);
  drain.lastBatch = { jobs: jobs.length, ms: 0 };
}

/** Null if nothing is to be waited for, or not in the time that the drain has for claims. */
function nextStartOf(
  { ports, queue, budget, startedMs, nextStartMs }: Drain,
  jobs: readonly ClaimedJob[],
): number | null {
  const { secondsApart } = ports.registry.policyOf(queue);
  const nowMs = ports.clock.nowMs();
  const hasStarted = secondsApart !== null && jobs.some((job) => job.fairKey !== null);
  const nextMs = hasStarted ? nowMs + secondsApart * 1000 : (nextStartMs ?? 0);
  return nextMs > nowMs && nextMs < startedMs + budget.claimForMs ? nextMs : null;
}

function startType(drain: Drain, typeName: string, jobs: readonly ClaimedJob[]): void {
  const { ports, spent, running, unsettled } = drain;
  const type = ports.registry.find(typeName);
  if (type) {
    spent.subrequests += type.subrequests * jobs.length;
    startJobs(running, type, jobs);
  } else {
    addEnded(unsettled, runsOf(jobs).map(releaseRun));
  }
}

/** Its lease ran out before, so the job may be what ended that invocation. */
export function isIsolated(job: ClaimedJob): boolean {
  return job.abandonments > 0;
}

function isOnTrial(job: ClaimedJob): boolean {
  return job.isTrial;
}
