// Extends the leases of a drain's jobs in time: those of its handlers, and those that wait behind them in their runs. All
// of them are extended by one statement. Between two extensions it looks every few seconds whether somebody cancelled a job.
import { describeError } from "../../core/database-errors.ts";
import { CancelledError } from "../../core/errors.ts";
import type { ClaimedJob } from "../../core/job.ts";
import { orderedLeaseSeconds } from "../../core/key-policy.ts";
import { extend, findCancelRequests } from "../../core/sql/index.ts";
import type { Ports } from "../ports.ts";
import { abortJobs, listJobs, type RunningJobs } from "./running-jobs.ts";

const defaultLeaseSeconds = 300;
/** A lease lasts three times as long as the time between two extensions, so there is time for another try. */
const extensionsPerLease = 3;
const extendAgainMs = 1000;
/** A handler is stopped within twice this time after somebody has cancelled its job. */
const lookEveryMs = 4000;

export interface LeaseUpkeep {
  readonly ports: Ports;
  readonly queue: string;
  readonly running: RunningJobs;
  /** False if the statements that are left are needed for settling. Then only the extensions look. */
  readonly canLook: () => boolean;
  /** Infinite while no job runs. */
  extendAtMs: number;
  /** When to look for cancelled jobs. Infinite while no job runs. */
  lookAtMs: number;
  /** The jobs that ran at the last look. Only jobs that run for longer are looked for, so short ones cost nothing. */
  longIds: ReadonlySet<string>;
}

export function createLeaseUpkeep(
  options: Pick<LeaseUpkeep, "ports" | "queue" | "running" | "canLook">,
): LeaseUpkeep {
  const never = Number.POSITIVE_INFINITY;
  return { ...options, extendAtMs: never, lookAtMs: never, longIds: new Set() };
}

/** The leases of these jobs began at the earliest when their claim was sent. */
export function noteClaimed(leases: LeaseUpkeep, jobs: readonly ClaimedJob[], sentMs: number): void {
  if (jobs.length === 0) return;
  leases.extendAtMs = Math.min(leases.extendAtMs, sentMs + untilExtendMs(shortestLease(leases, jobs)));
  leases.lookAtMs = Math.min(leases.lookAtMs, sentMs + lookEveryMs);
}

export function untilUpkeepMs({ ports, extendAtMs, lookAtMs }: LeaseUpkeep): number {
  return Math.max(Math.min(extendAtMs, lookAtMs) - ports.clock.nowMs(), 0);
}

/** A job whose lease is lost is told to stop, and so is a job that somebody cancelled. */
export async function keepLeases(leases: LeaseUpkeep): Promise<void> {
  const nowMs = leases.ports.clock.nowMs();
  if (nowMs >= leases.extendAtMs) await extendLeases(leases);
  else if (nowMs >= leases.lookAtMs) await lookForCancelled(leases);
}

async function extendLeases(leases: LeaseUpkeep): Promise<void> {
  const { ports, queue, running } = leases;
  const jobs = listJobs(running);
  // A lease is never shortened, so the shortest one serves them all.
  const seconds = shortestLease(leases, jobs);
  leases.extendAtMs = ports.clock.nowMs() + untilExtendMs(seconds);
  noteLook(leases, jobs);
  if (jobs.length === 0) return;
  try {
    const extended = await ports.db.run(extend(jobs, { seconds }));
    const held = new Set(extended.map(({ id }) => id));
    abortJobs(
      running,
      jobs.filter(({ id }) => !held.has(id)),
    );
    stopCancelled(
      running,
      extended.filter(({ cancelRequested }) => cancelRequested).map(({ id }) => id),
    );
  } catch (error) {
    ports.log.warn("extend failed", { queue, ...describeError(error) });
    leases.extendAtMs = ports.clock.nowMs() + extendAgainMs;
  }
}

async function lookForCancelled(leases: LeaseUpkeep): Promise<void> {
  const { ports, queue, running, longIds } = leases;
  const jobs = listJobs(running);
  const ids = jobs.map(({ id }) => id).filter((id) => longIds.has(id));
  noteLook(leases, jobs);
  if (ids.length === 0 || !leases.canLook()) return;
  try {
    stopCancelled(running, await ports.db.run(findCancelRequests(ids)));
  } catch (error) {
    ports.log.warn("look for cancelled jobs failed", { queue, ...describeError(error) });
  }
}

function noteLook(leases: LeaseUpkeep, jobs: readonly ClaimedJob[]): void {
  leases.longIds = new Set(jobs.map(({ id }) => id));
  leases.lookAtMs = jobs.length > 0 ? leases.ports.clock.nowMs() + lookEveryMs : Number.POSITIVE_INFINITY;
}

function stopCancelled(running: RunningJobs, ids: readonly string[]): void {
  const cancelled = listJobs(running).filter(({ id }) => ids.includes(id));
  abortJobs(running, cancelled, new CancelledError("the job was cancelled"));
}

function untilExtendMs(leaseSeconds: number): number {
  return (leaseSeconds * 1000) / extensionsPerLease;
}

/** Without jobs: infinite. */
function shortestLease({ ports }: LeaseUpkeep, jobs: readonly ClaimedJob[]): number {
  return Math.min(
    ...jobs.map(({ type, runKey }) => {
      const seconds = ports.registry.find(type)?.leaseSeconds ?? defaultLeaseSeconds;
      return runKey === null ? seconds : Math.min(seconds, orderedLeaseSeconds);
    }),
  );
}
