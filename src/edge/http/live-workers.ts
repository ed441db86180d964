// The live workers of each queue, as this isolate last read them, and the buckets that follow from them. A claim needs the
// buckets before it is sent, and should stay one round trip. So the list may be a few seconds old. That is no harm: the ring
// decides which worker should take a key, and the key's turn alone decides which worker gets it.
import { ownersOf, placeOf, type RingPlace } from "../../core/policy/hash-ring.ts";
import { liveWorkers } from "../../core/sql/index.ts";
import type { LiveWorker } from "../../core/sql/workers.ts";
import type { Ports } from "../../queue/ports.ts";
import type { IsolateState } from "../isolate-state.ts";

const readEveryMs = 5_000;
/** Queue names come from outside. */
const maxQueues = 1_000;

interface Invocation {
  ports: Ports;
  isolate: IsolateState;
}

/** Null if the worker may take from all buckets: because it never registered, or because it is the only one. */
export async function findPlace(
  invocation: Invocation,
  { queue, worker }: { queue: string; worker: string },
): Promise<RingPlace | null> {
  const live = await liveWorkersOf(invocation, queue);
  if (live.ids.size <= 1 || !live.ids.has(worker)) return null;
  live.owners ??= ownersOf(live.ids);
  return placeOf(worker, live.owners);
}

/** `workers` are all live workers of the queue. */
export function rememberWorkers(
  { ports, isolate }: Invocation,
  queue: string,
  workers: Iterable<string>,
): void {
  const { liveWorkers } = isolate;
  liveWorkers.delete(queue);
  const [oldest] = liveWorkers.keys();
  if (liveWorkers.size >= maxQueues && oldest !== undefined) liveWorkers.delete(oldest);
  liveWorkers.set(queue, { ids: new Set(workers), owners: undefined, readAtMs: ports.clock.nowMs() });
}

/** In this isolate the other workers have its buckets at once. */
export function forgetWorker({ isolate }: Invocation, worker: string): void {
  for (const live of isolate.liveWorkers.values()) if (live.ids.delete(worker)) live.owners = undefined;
}

export function idsOf(workers: readonly LiveWorker[], { queue }: { queue: string }): string[] {
  return workers.filter(({ queues }) => queues.includes(queue)).map(({ id }) => id);
}

async function liveWorkersOf(invocation: Invocation, queue: string) {
  const { ports, isolate } = invocation;
  const last = isolate.liveWorkers.get(queue);
  if (last && ports.clock.nowMs() - last.readAtMs < readEveryMs) return last;
  // The time is set before the read, so that only one of many requests reads. The others use the last list.
  if (last) last.readAtMs = ports.clock.nowMs();
  rememberWorkers(invocation, queue, idsOf(await ports.db.run(liveWorkers({ queue })), { queue }));
  return isolate.liveWorkers.get(queue) ?? { ids: new Set<string>(), owners: undefined };
}
