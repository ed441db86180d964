// Who owned which buckets: the ring at each change of the live workers, as the registry has them.
import { bucketCount, ownersOf } from "../../src/core/policy/hash-ring.ts";

export interface RingChange {
  atMs: number;
  joined: string[];
  gone: string[];
  workers: string[];
  /** By bucket. */
  owners: string[];
  bucketsMoved: number;
  keysMoved: number;
  /** The share of the buckets that should move: those of the workers that joined or are gone. */
  expectedShare: number;
}

export interface RingLog {
  readonly changes: RingChange[];
  /** `workers` are the live ones at that time. */
  note(atMs: number, workers: readonly string[]): void;
  /** Undefined if there was no live worker. */
  ownerOf(key: string, atMs: number): string | undefined;
}

/** `bucketOf` has the bucket of each partition key. */
export function createRingLog(bucketOf: ReadonlyMap<string, number>): RingLog {
  const buckets = [...bucketOf.values()];
  const changes: RingChange[] = [];
  return {
    changes,
    note(atMs, workers) {
      const before: Pick<RingChange, "workers" | "owners"> = changes.at(-1) ?? { workers: [], owners: [] };
      const joined = workers.filter((worker) => !before.workers.includes(worker));
      const gone = before.workers.filter((worker) => !workers.includes(worker));
      if (joined.length + gone.length === 0) return;
      const owners = ownersOf(workers);
      const hasMoved = (bucket: number) => owners[bucket] !== before.owners[bucket];
      changes.push({
        atMs,
        joined,
        gone,
        workers: [...workers],
        owners,
        bucketsMoved: Array.from({ length: bucketCount }, (_, bucket) => bucket).filter(hasMoved).length,
        keysMoved: buckets.filter(hasMoved).length,
        expectedShare: (joined.length + gone.length) / new Set([...before.workers, ...workers]).size,
      });
    },
    ownerOf: (key, atMs) =>
      changes.findLast((change) => change.atMs <= atMs)?.owners[bucketOf.get(key) ?? -1],
  };
}
