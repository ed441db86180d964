// The drain of one queue: claim a batch, run its handlers, settle what has ended along with the next claim, and extend
// the leases of what still runs. It goes on while there is more and the budget allows, and ends when every job that it
// claimed is settled.
import { describeError } from "../../core/database-errors.ts";
import type { ClaimedJob } from "../../core/job.ts";
import {
  claimingEnd,
  type DrainBudget,
  type DrainEnd,
  fitsBeforeEnd,
  hasSubrequests,
  nextBatchSize,
  type Pace,
} from "../../core/policy/drain-budget.ts";
import { type Claimed, claim } from "../../core/sql/claim.ts";
import { extend } from "../../core/sql/index.ts";
import type { JobType, Ports } from "../ports.ts";
import { createRingMember, learnWorkers, leaveRing, type RingMember, ringFields } from "./ring-member.ts";
import { createRunningJobs, type RunningJobs } from "./running-jobs.ts";
import type { SettledCounts } from "./settle-report.ts";
import {
  createUnsettledJobs,
  isRefusal,
  jobsToSettleWithClaim,
  markSettled,
  settleAll,
  type UnsettledJobs,
} from "./unsettled-jobs.ts";

const defaultLeaseSeconds = 300;
/** How long an outcome waits for others, so that they are settled together. */
const settleTogetherMs = 100;
const extendAgainMs = 1000;

export interface DrainReport extends SettledCounts {
  queue: string;
  claimed: number;
  /** How long a claim took on average, including what it settled. Null if there was no claim. */
  claimMs: number | null;
  end: DrainEnd;
}

export interface DrainOptions {
  queue: string;
  budget: DrainBudget;
  worker?: string;
  /** Drains that share one budget count on the same object. */
  spent?: { subrequests: number };
  /** Called when the drain claims no more, or claims nothing while its present jobs run. It is called repeatedly. */
  onClaimed?(): void;
}

/** What a drain keeps from one step to the next. */
interface Drain extends DrainOptions {
  /** Each statement is counted. */
  readonly ports: Ports;
  readonly spent: { subrequests: number };
  readonly startedMs: number;
  readonly running: RunningJobs;
  readonly unsettled: UnsettledJobs;
  readonly claims: { count: number; ms: number; jobs: number };
  readonly member: RingMember;
  /** Why the drain claims no more. Null if it may still claim. */
  end: DrainEnd | null;
  lastBatch: Pace | null;
  extendAtMs: number;
  /** Only a type on trial has more jobs. It gives out the next ones when those that run have ended. */
  isWaitingForTrial: boolean;
}

export async function drainQueue(ports: Ports, options: DrainOptions): Promise<DrainReport> {
  const drain = createDrain(ports, options);
  const { running, unsettled } = drain;
  for (;;) {
    await claimBatch(drain);
    if (!(await settleAll(unsettled))) drain.end = "error";
    if (drain.end || running.jobs().some(isIsolated)) drain.onClaimed?.();
    if (drain.end && hasOneToSpare(drain)) await leaveRing(drain.ports, drain.member, drain);
    if (running.size() + running.endedCount() + unsettled.jobs.length > 0) {
      await waitForOutcomes(drain);
      await extendLeases(drain);
      unsettled.jobs.push(...running.takeEnded());
    } else if (drain.end) {
      return toReport(drain, drain.end);
    }
  }
}

function createDrain(uncounted: Ports, options: DrainOptions): Drain {
  const { queue, budget, spent = { subrequests: 0 } } = options;
  const ports = countStatements(uncounted, spent);
  const startedMs = ports.clock.nowMs();
  const endMs = startedMs + budget.hardEndMs;
  return {
    ...options,
    ports,
    spent,
    startedMs,
    running: createRunningJobs(ports, { endMs }),
    unsettled: createUnsettledJobs(ports, { queue, endMs }),
    claims: { count: 0, ms: 0, jobs: 0 },
    member: createRingMember(options.worker),
    end: null,
    lastBatch: null,
    extendAtMs: Number.POSITIVE_INFINITY,
    isWaitingForTrial: false,
  };
}

function countStatements(ports: Ports, spent: { subrequests: number }): Ports {
  const run: Ports["db"]["run"] = (statement) => {
    spent.subrequests++;
    return ports.db.run(statement);
  };
  return { ...ports, db: { run } };
}

async function claimBatch(drain: Drain): Promise<void> {
  const { budget, running, spent } = drain;
  drain.end ??= claimingEnd(budget, { elapsedMs: elapsedMs(drain), ...spent });
  // Isolated jobs may end this invocation, so no other job is claimed beside them.
  if (drain.end || running.jobs().some(isIsolated)) return;
  if (drain.isWaitingForTrial && running.jobs().some(isOnTrial)) return;
  const types = typesThatFit(drain);
  const limit = nextBatchSize(budget, {
    elapsedMs: elapsedMs(drain),
    inFlight: running.size(),
    subrequests: spent.subrequests,
    subrequestsPerJob: Math.max(0, ...types.map((type) => type.subrequests)),
    last: drain.lastBatch,
  });
  if (types.length === 0) drain.end = "time";
  else if (limit === 0 && running.size() === 0) drain.end = "subrequests";
  else if (limit > 0) await sendClaim(drain, types, limit);
}

async function sendClaim(drain: Drain, types: readonly JobType[], limit: number): Promise<void> {
  const { ports, queue, budget, member, unsettled } = drain;
  const sentMs = ports.clock.nowMs();
  const leaseSeconds = Math.min(...types.map((type) => type.leaseSeconds));
  const takeIsolated = drain.running.size() === 0;
  const request = { queue, types, limit, leaseSeconds, maxBytes: budget.payloadBytes, takeIsolated };
  const settled = jobsToSettleWithClaim(unsettled);
  try {
    const batch = await ports.db.run(claim({ ...request, ...ringFields(member) }, settled));
    markSettled(unsettled, settled, batch.settled);
    learnWorkers(member, batch);
    startBatch(drain, batch, { sentMs, leaseSeconds });
  } catch (error) {
    ports.log.error("claim failed", { queue, ...describeError(error) });
    // The database may have refused what came along. That is settled by itself now, and the next claim will tell.
    if (settled.length === 0 || !isRefusal(error)) drain.end = "error";
  }
}

function startBatch(
  drain: Drain,
  { jobs, hasMore }: Claimed,
  { sentMs, leaseSeconds }: { sentMs: number; leaseSeconds: number },
): void {
  const { ports, claims, running } = drain;
  claims.count++;
  claims.ms += ports.clock.nowMs() - sentMs;
  claims.jobs += jobs.length;
  for (const [type, ofType] of Map.groupBy(jobs, (job) => job.type)) startJobs(drain, type, ofType);
  drain.isWaitingForTrial = !hasMore && running.jobs().some(isOnTrial);
  if (!hasMore && !drain.isWaitingForTrial) drain.end = "empty";
  drain.extendAtMs = Math.min(drain.extendAtMs, sentMs + (leaseSeconds * 1000) / 3);
  drain.lastBatch = { jobs: jobs.length, ms: 0 };
}

/** Jobs whose time-out no longer fits, because the claim took long, go back to the queue. */
function startJobs(drain: Drain, typeName: string, jobs: readonly ClaimedJob[]): void {
  const { ports, budget, spent, running, unsettled } = drain;
  const type = ports.registry.find(typeName);
  if (type && fitsBeforeEnd(budget, { elapsedMs: elapsedMs(drain), timeoutSeconds: type.timeoutSeconds })) {
    spent.subrequests += type.subrequests * jobs.length;
    running.start(type, jobs);
  } else {
    unsettled.jobs.push(...jobs.map((job) => ({ job, outcome: { kind: "release" } as const })));
  }
}

/**
 * Outcomes are settled together: wait for the whole batch, but not for its slowest job, unless there are hardly any
 * subrequests left to settle with.
 */
async function waitForOutcomes(drain: Drain): Promise<void> {
  const { ports, budget, spent, running, unsettled } = drain;
  const startedMs = ports.clock.nowMs();
  const untilExtendMs = () => Math.max(drain.extendAtMs - ports.clock.nowMs(), 0);
  if (drain.end && running.endedCount() + unsettled.jobs.length === 0) {
    await running.waitForAny(untilExtendMs());
  }
  const patienceMs = hasSubrequests(budget, spent) ? settleTogetherMs : Number.POSITIVE_INFINITY;
  await running.waitForAll(Math.min(patienceMs, untilExtendMs()));
  if (drain.lastBatch) drain.lastBatch.ms += ports.clock.nowMs() - startedMs;
}

/** One statement for all jobs that run. A job whose lease is lost is told to stop. */
async function extendLeases(drain: Drain): Promise<void> {
  const { ports, queue, running } = drain;
  if (ports.clock.nowMs() < drain.extendAtMs) return;
  const jobs = running.jobs();
  // A lease is never shortened, so the shortest one serves them all.
  const seconds = Math.min(
    ...jobs.map((job) => ports.registry.find(job.type)?.leaseSeconds ?? defaultLeaseSeconds),
  );
  drain.extendAtMs = ports.clock.nowMs() + (seconds * 1000) / 3; // without jobs: never
  if (jobs.length === 0) return;
  try {
    const extended = new Set((await ports.db.run(extend(jobs, { seconds }))).map((job) => job.id));
    running.abort(new Set(jobs.map((job) => job.id).filter((id) => !extended.has(id))));
  } catch (error) {
    // There is time for another try: a lease lasts three times as long as the time between two extensions.
    ports.log.warn("extend failed", { queue, ...describeError(error) });
    drain.extendAtMs = ports.clock.nowMs() + extendAgainMs;
  }
}

/** One subrequest is kept for settling. A drain that cannot leave the ring is gone 30 s after its last claim. */
function hasOneToSpare({ spent, budget }: Drain): boolean {
  return spent.subrequests + 1 < budget.subrequests;
}

function toReport({ queue, claims, unsettled }: Drain, end: DrainEnd): DrainReport {
  const claimMs = claims.count > 0 ? claims.ms / claims.count : null;
  return { queue, claimed: claims.jobs, ...unsettled.counts, claimMs, end };
}

function elapsedMs({ ports, startedMs }: Drain): number {
  return ports.clock.nowMs() - startedMs;
}

function isOnTrial(job: ClaimedJob): boolean {
  return job.isTrial;
}

/** Its lease ran out before, so the job may be what ended that invocation. */
function isIsolated(job: ClaimedJob): boolean {
  return job.abandonments > 0;
}

/** A type whose time-out does not fit before the hard end is left to a drain that has the time. */
function typesThatFit(drain: Drain): JobType[] {
  return drain.ports.registry
    .all()
    .filter(
      ({ work, timeoutSeconds }) =>
        work.kind !== "pulled" &&
        fitsBeforeEnd(drain.budget, { elapsedMs: elapsedMs(drain), timeoutSeconds }),
    );
}
