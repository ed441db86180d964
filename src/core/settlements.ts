// Turns settlements into the arguments of sluice.settle() and its answer back. They are sorted by id, as a lease has its
// jobs, because the engine compares the two lists.
import type { ErrorDetail, JobStatus, Json, NewJob, Outcome, Settlement, Wait } from "./job.ts";
import { toFields } from "./job-options.ts";

/** The job's new status; null, and not applied, when the lease was lost. */
export interface Settled {
  id: string;
  status: JobStatus | null;
  applied: boolean;
}

/** The arguments of sluice.settle(), and how to read the statuses that it answers with. */
export function packSettlements(settlements: readonly Settlement[]) {
  const sorted = settlements
    .map((settlement, place) => ({ ...settlement, place }))
    .sort((a, b) => compare(a.job.id, b.job.id) || a.place - b.place);
  const areAllPlain = sorted.every(({ outcome }) => isPlain(outcome));
  return {
    ids: sorted.map(({ job }) => job.id),
    keys: sorted.map(({ job }) => job.leaseKey),
    /** Null if all jobs are completed without an output. */
    outcomes: areAllPlain ? null : JSON.stringify(sorted.map(({ outcome }) => toRow(outcome))),
    read(statuses: readonly Settled["status"][]): Settled[] {
      const settled: Settled[] = [];
      for (const [index, { job, place }] of sorted.entries()) {
        const status = statuses[index] ?? null;
        settled[place] = { id: job.id, status, applied: status !== null };
      }
      return settled;
    },
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function isPlain(outcome: Outcome): boolean {
  return (
    outcome.kind === "complete" && outcome.output === null && !outcome.next && outcome.uses === undefined
  );
}

interface AnyOutcome {
  kind: Outcome["kind"];
  output?: Json;
  next?: NewJob;
  message?: string;
  detail?: ErrorDetail;
  retryInSeconds?: number | undefined;
  uses?: 0 | 1 | undefined;
  wait?: Wait;
}

function toRow({ kind, output, next, message, detail, retryInSeconds, uses, wait }: AnyOutcome) {
  const row = { outcome: kind, output, message, detail, seconds: retryInSeconds, uses, ...wait };
  return next ? { ...row, next: { type: next.type, payload: next.payload, ...toFields(next) } } : row;
}
