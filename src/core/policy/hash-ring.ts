// The hash ring: which worker takes which keys. A partition key belongs to one of 360 buckets, and each bucket belongs to one
// of the live workers of its queue. The answer depends on the ids of the workers alone, so all workers agree without talking
// to each other. When a worker joins or leaves, only its own buckets move: about 1/N of all.
//
// The 360 buckets stand on the ring at equal distances, and each worker has 128 virtual nodes between them. A bucket belongs
// to the first node after it.

export const bucketCount = 360;
const nodesPerWorker = 128;

/** The owner of each bucket. Empty if there are no workers. The order of the ids and duplicates do not matter. */
export function ownersOf(workerIds: Iterable<string>): string[] {
  const first: (Node | undefined)[] = new Array(bucketCount).fill(undefined);
  for (const worker of workerIds) {
    const seed = hash(worker);
    for (let index = 0; index < nodesPerWorker; index++) {
      const position = positionOf(seed, index);
      const bucket = Math.floor(position);
      if (isBefore(position, worker, first[bucket])) first[bucket] = { position, worker };
    }
  }
  return fillGaps(first);
}

/** In ascending order. Empty if the worker is not one of them. With about 100 workers and more, some own no bucket. */
export function bucketsOf(workerId: string, workerIds: Iterable<string>): number[] {
  return ownersOf(workerIds).flatMap((owner, bucket) => (owner === workerId ? [bucket] : []));
}

/** A worker's place on the ring. */
export interface RingPlace {
  /** Its own buckets, in ascending order. */
  readonly buckets: readonly number[];
  /** Of each bucket the number of its owner. The numbers mean nothing else. */
  readonly owners: readonly number[];
}

export function placeOf(workerId: string, owners: readonly string[]): RingPlace {
  const numbers = new Map([...new Set(owners)].map((owner, number) => [owner, number]));
  return {
    buckets: owners.flatMap((owner, bucket) => (owner === workerId ? [bucket] : [])),
    owners: owners.map((owner) => numbers.get(owner) ?? 0),
  };
}

interface Node {
  /** The whole part is the number of the bucket before it. */
  position: number;
  worker: string;
}

/** Two nodes at one place are ordered by their workers, so that the order of the ids does not matter. */
function isBefore(position: number, worker: string, other: Node | undefined): boolean {
  if (!other || position < other.position) return true;
  return position === other.position && worker < other.worker;
}

/** If there is no node between a bucket and the next one, both have the same owner. */
function fillGaps(first: readonly (Node | undefined)[]): string[] {
  let owner = first.find((node) => node)?.worker; // the first node of the ring follows its last bucket
  if (owner === undefined) return [];
  const owners: string[] = [];
  for (let bucket = bucketCount - 1; bucket >= 0; bucket--) {
    owner = first[bucket]?.worker ?? owner;
    owners.unshift(owner);
  }
  return owners;
}

/**
 * A node comes after a random bucket. Its distance from the bucket is random only within the node's own 128th of the way to
 * the next one. So all workers have as many near nodes as far ones, and their shares differ less. With 32 workers the
 * largest share is 1.42 times the average (the median of 600 sets of names). With random distances it is 1.60 times.
 */
function positionOf([low, high]: Seed, index: number): number {
  const random = mix(mix(low + Math.imul(index, 0x9e3779b9)) ^ high);
  const distance = (index + mix(random ^ low) / 2 ** 32) / nodesPerWorker;
  return (random % bucketCount) + distance;
}

type Seed = readonly [low: number, high: number];

/** FNV-1a, and a second hash beside it: with 32 bits, two of a thousand workers could have the same nodes. */
function hash(text: string): Seed {
  let low = 0x811c9dc5;
  let high = 0x9e3779b9;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ unit, 0x85ebca6b);
    high = (high << 13) | (high >>> 19);
  }
  return [mix(low), mix(high)];
}

/** Spreads every bit over all 32 (the finalizer of MurmurHash3). */
function mix(value: number): number {
  let bits = value ^ (value >>> 16);
  bits = Math.imul(bits, 0x85ebca6b);
  bits ^= bits >>> 13;
  bits = Math.imul(bits, 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
