// Extends the leases of a drain's jobs in time: those of its handlers, and those that wait behind them in their runs. All
// of them are extended by one statement.
import { describeError } from "../../core/database-errors.ts";
import type { ClaimedJob } from "../../core/job.ts";
import { orderedLeaseSeconds } from "../../core/key-policy.ts";
import { extend } from "../../core/sql/index.ts";
import type { Ports } from "../ports.ts";
import { abortJobs, listJobs, type RunningJobs } from "./running-jobs.ts";

const defaultLeaseSeconds = 300;
/** A lease lasts three times as long as the time between two extensions, so there is time for another try. */
const extensionsPerLease = 3;
const extendAgainMs = 1000;

export interface LeaseUpkeep {
  readonly ports: Ports;
  readonly queue: string;
  readonly running: RunningJobs;
  /** Infinite while no job runs. */
  extendAtMs: number;
}

/** The leases of these jobs began at the earliest when their claim was sent. */
export function noteClaimed(leases: LeaseUpkeep, jobs: readonly ClaimedJob[], sentMs: number): void {
  leases.extendAtMs = Math.min(leases.extendAtMs, sentMs + untilExtendMs(shortestLease(leases, jobs)));
}

/** A job whose lease is lost is told to stop. */
export async function extendLeases(leases: LeaseUpkeep): Promise<void> {
  const { ports, queue, running } = leases;
  if (ports.clock.nowMs() < leases.extendAtMs) return;
  const jobs = listJobs(running);
  // A lease is never shortened, so the shortest one serves them all.
  const seconds = shortestLease(leases, jobs);
  leases.extendAtMs = ports.clock.nowMs() + untilExtendMs(seconds);
  if (jobs.length === 0) return;
  try {
    const extended = new Set((await ports.db.run(extend(jobs, { seconds }))).map((job) => job.id));
    abortJobs(
      running,
      jobs.filter(({ id }) => !extended.has(id)),
    );
  } catch (error) {
    ports.log.warn("extend failed", { queue, ...describeError(error) });
    leases.extendAtMs = ports.clock.nowMs() + extendAgainMs;
  }
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
