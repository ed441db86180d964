// A drain's place on the hash ring of its queue. Its claims are its heartbeats. They register it as soon as one of them takes
// jobs with a partition key and there are more: a drain of one batch, as most nudges are, would move buckets for some
// milliseconds and gain nothing. From then on each answer has the live workers, and the next claim takes from the buckets
// that follow from them. The drain leaves when it claims no more.
import { describeError } from "../../core/database-errors.ts";
import { ownersOf, placeOf, type RingPlace } from "../../core/policy/hash-ring.ts";
import type { Claim, Claimed } from "../../core/sql/claim.ts";
import { removeWorker } from "../../core/sql/index.ts";
import type { Ports } from "../ports.ts";

export interface RingMember {
  /** Without an id the drain joins no ring. */
  readonly worker: string | undefined;
  /** The live workers of the queue as of the last answer. The drain is one of them once it is registered. */
  workers: readonly string[];
  /** Null if the drain takes from all buckets: it is not registered, or it is alone. */
  place: RingPlace | null;
}

export function createRingMember(worker: string | undefined): RingMember {
  return { worker, workers: [], place: null };
}

/** What the next claim says about the drain as a worker. */
export function ringFields({
  worker,
  place,
}: RingMember): Pick<Claim, "worker" | "registers" | "buckets" | "owners"> {
  return worker === undefined ? {} : { worker, registers: true, ...place };
}

export function learnWorkers(member: RingMember, workers: Claimed["workers"]): void {
  const { worker } = member;
  if (worker === undefined || !workers || areEqual(workers, member.workers)) return;
  member.workers = workers;
  member.place = workers.length > 1 && workers.includes(worker) ? placeOf(worker, ownersOf(workers)) : null;
}

/** If it fails, the worker is gone 30 s after its last claim. */
export async function leaveRing(
  ports: Ports,
  member: RingMember,
  { queue }: { queue: string },
): Promise<void> {
  const { worker, workers } = member;
  if (worker === undefined || !workers.includes(worker)) return;
  member.workers = [];
  try {
    await ports.db.run(removeWorker(worker));
  } catch (error) {
    ports.log.warn("worker not removed", { queue, worker, ...describeError(error) });
  }
}

function areEqual(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((item, index) => item === others[index]);
}
