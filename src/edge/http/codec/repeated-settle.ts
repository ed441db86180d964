// A settlement that did not apply has one of two reasons. The worker sent it before and lost the answer, or the worker has
// lost its lease. The lease is gone in both cases, so the job's state shows which one it was.
import type { SettlementRequest } from "../../../contract/work.ts";
import type { Settled } from "../../../core/settlements.ts";
import { findStates } from "../../../core/sql/index.ts";
import type { JobState } from "../../../core/sql/jobs.ts";
import type { Ports } from "../../../queue/ports.ts";
import type { Lease } from "./lease.ts";

/** The engine cuts messages to this length (migrations/functions/settle.sql). */
const maxMessageLength = 4000;

type WithoutId<T> = T extends unknown ? Omit<T, "job_id"> : never;
/** The settlement of the job whose id is in the path. */
export type OneSettlement = WithoutId<SettlementRequest>;

export interface SettlementAnswer extends Settled {
  /** True if it did not apply because this lease had already settled the job in the same way. */
  repeated: boolean;
}

/** Adds the current status of the jobs that were not settled. */
export async function addCurrentStatus(
  ports: Ports,
  settled: readonly Settled[],
  requests: readonly { settlement: SettlementRequest; lease: Lease }[],
): Promise<SettlementAnswer[]> {
  const ids = settled.flatMap(({ id, applied }) => (applied ? [] : [id]));
  const rows = ids.length > 0 ? await ports.db.run(findStates([...new Set(ids)])) : [];
  const states = new Map(rows.map((state) => [state.id, state]));
  return settled.map((one, index) => {
    const request = requests[index];
    const state = states.get(one.id.toLowerCase());
    if (one.applied || !state || !request) return { ...one, repeated: false };
    return {
      ...one,
      status: state.status,
      repeated: wasSettledByLease(state, request.settlement, request.lease),
    };
  });
}

/**
 * True if this lease has already settled the job in the same way. Each claim has a new attempt number, and an attempt that
 * fails leaves an error with its number. So if the job completed in the lease's attempt, and that attempt has no error,
 * this lease completed it. A replay starts the numbers again, but the errors of earlier attempts are still there. Only a
 * release gives a number back, and a worker that has released a job does not settle it any more. A release leaves no trace,
 * so a repeated release is never recognized.
 */
export function wasSettledByLease(
  { status, attempts, errors }: Omit<JobState, "id">,
  settlement: OneSettlement,
  lease: Lease,
): boolean {
  const attemptErrors = errors.filter(({ attempt }) => attempt === lease.attempt);
  if (settlement.outcome === "complete")
    return status === "completed" && attempts === lease.attempt && attemptErrors.length === 0;
  const message = settlement.outcome === "fail" ? settlement.error.slice(0, maxMessageLength) : undefined;
  return attemptErrors.some((error) => error.message === message);
}
