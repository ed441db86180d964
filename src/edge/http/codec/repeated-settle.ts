// A settlement that did not apply: sent again after its answer was lost, or by a worker whose lease is lost. The lease is
// gone in both cases, so the job's own state tells them apart. Only one of two equal settlements ever applies.
import type { SettlementRequest } from "../../../contract/work.ts";
import type { Settled } from "../../../core/settlements.ts";
import { findStates } from "../../../core/sql/index.ts";
import type { JobState } from "../../../core/sql/jobs.ts";
import type { Ports } from "../../../queue/ports.ts";
import type { Lease } from "./lease.ts";

/** As the engine stores it (migrations/functions/settle.sql). */
const keptMessageLength = 4000;

type WithoutId<T> = T extends unknown ? Omit<T, "job_id"> : never;
/** The settlement of a job that the path names. */
export type OneSettlement = WithoutId<SettlementRequest>;

export interface Told extends Settled {
  /** Not applied because this very lease had settled it so before. */
  repeated: boolean;
}

/** Fills in how those jobs stand now that were not settled. */
export async function withPresentState(
  ports: Ports,
  settled: readonly Settled[],
  asked: readonly { settlement: SettlementRequest; lease: Lease }[],
): Promise<Told[]> {
  const ids = settled.flatMap(({ id, applied }) => (applied ? [] : [id]));
  const found = ids.length > 0 ? await ports.db.run(findStates([...new Set(ids)])) : [];
  const states = new Map(found.map((state) => [state.id, state]));
  return settled.map((one, index) => {
    const request = asked[index];
    const state = states.get(one.id.toLowerCase());
    if (one.applied || !state || !request) return { ...one, repeated: false };
    return { ...one, status: state.status, repeated: isOwnWork(state, request.settlement, request.lease) };
  });
}

/**
 * Every claim raises the attempt, and an attempt that did not complete leaves its error; only a release gives the number
 * back, and that is its holder's own doing. So a job that completed in this attempt, which left no error, was completed by
 * this lease, also when the job was replayed since and counts anew. A release leaves nothing behind to be told by.
 */
export function isOwnWork(
  { status, attempts, errors }: Omit<JobState, "id">,
  asked: OneSettlement,
  lease: Lease,
): boolean {
  const ofAttempt = errors.filter(({ attempt }) => attempt === lease.attempt);
  if (asked.outcome === "complete")
    return status === "completed" && attempts === lease.attempt && ofAttempt.length === 0;
  const message = asked.outcome === "fail" ? asked.error.slice(0, keptMessageLength) : undefined;
  return ofAttempt.some((error) => error.message === message);
}
