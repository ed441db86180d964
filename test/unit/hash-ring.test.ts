// The hash ring: every bucket has one owner, shares are even, and a change of the workers moves only what it must.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bucketCount, bucketsOf, ownersOf } from "../../src/core/policy/hash-ring.ts";

const workerId = fc.string({ unit: "binary", minLength: 1, maxLength: 40 });
const workerIds = (min: number, max: number) =>
  fc.uniqueArray(workerId, { minLength: min, maxLength: max, size: "max" });
const allBuckets = Array.from({ length: bucketCount }, (_, bucket) => bucket);

describe("for any set of workers", () => {
  test("each bucket has one owner, which is one of them", () => {
    fc.assert(
      fc.property(workerIds(1, 12), (ids) => {
        const buckets = ids.flatMap((id) => bucketsOf(id, ids));
        expect(buckets.toSorted((a, b) => a - b)).toEqual(allBuckets);
      }),
    );
  });

  test("the order of the ids and duplicates do not matter", () => {
    fc.assert(
      fc.property(workerIds(1, 12), fc.array(fc.nat(11)), (ids, picks) => {
        const again = picks.map((pick) => ids[pick % ids.length] ?? "");
        expect(ownersOf([...again, ...ids.toReversed(), ...again])).toEqual(ownersOf(ids));
      }),
    );
  });

  test("the buckets of a worker come in ascending order, and agree with the owners", () => {
    fc.assert(
      fc.property(workerIds(1, 12), (ids) => {
        const owners = ownersOf(ids);
        for (const id of ids) {
          const buckets = bucketsOf(id, ids);
          expect(buckets).toEqual(buckets.toSorted((a, b) => a - b));
          for (const bucket of buckets) expect(owners[bucket]).toBe(id);
        }
      }),
    );
  });

  test("no bucket moves between two workers that both stay", () => {
    fc.assert(
      fc.property(workerIds(1, 12), workerIds(1, 3), (staying, others) => {
        const stayingIds = new Set(staying);
        const joining = others.filter((id) => !stayingIds.has(id));
        const before = ownersOf(staying);
        const after = ownersOf([...staying, ...joining]);
        // Read in the other direction it says the same of workers that leave.
        for (const bucket of allBuckets)
          if (stayingIds.has(after[bucket] ?? "")) expect(after[bucket]).toBe(before[bucket]);
      }),
    );
  });
});

test("without workers no bucket has an owner", () => {
  expect(ownersOf([])).toEqual([]);
  expect(bucketsOf("a", [])).toEqual([]);
});

test("a worker that is not one of them owns nothing, and a single one owns everything", () => {
  expect(bucketsOf("a", ["b", "c"])).toEqual([]);
  expect(bucketsOf("a", ["a"])).toEqual(allBuckets);
});

/** Names as people and programs give them. */
const fleets: Record<string, (n: number) => string> = {
  "worker-1": (n) => `worker-${n}`,
  w1: (n) => `w${n}`,
  "1": String,
  "drain-…": (n) => `drain-${1_763_400_000_000 + n * 37}-${n * 7919}`,
  "host names": (n) => `host-${n}.eu-central.example.com`,
  uuids: (n) => `0190a000-0000-7000-8000-${String(n).padStart(12, "0")}`,
};
const fleet = (name: string, size: number) =>
  Array.from({ length: size }, (_, n) => fleets[name]?.(n + 1) ?? "");
const sizes = Array.from({ length: 31 }, (_, n) => n + 2);

describe.each(Object.keys(fleets))("with workers that are named as %s", (name) => {
  test("the largest of 2 to 32 shares is about 1.6 times the average at most", () => {
    const largest = sizes.map((size) => {
      const ids = fleet(name, size);
      const owned = Map.groupBy(ownersOf(ids), (owner) => owner);
      expect(owned.size).toBe(size);
      return (Math.max(...[...owned.values()].map(({ length }) => length)) * size) / bucketCount;
    });
    expect(Math.max(...largest)).toBeLessThan(1.7);
    expect(mean(largest)).toBeLessThan(1.4);
  });

  test("one more worker moves about 1/N of the buckets, and all of them to itself", () => {
    const moved = sizes.map((size) => {
      const before = ownersOf(fleet(name, size - 1));
      const after = ownersOf(fleet(name, size));
      const changed = allBuckets.filter((bucket) => before[bucket] !== after[bucket]);
      expect(changed).toEqual(bucketsOf(fleet(name, size).at(-1) ?? "", fleet(name, size)));
      return (changed.length * size) / bucketCount;
    });
    expect(Math.max(...moved)).toBeLessThan(1.7);
    expect(mean(moved)).toBeGreaterThan(0.8);
    expect(mean(moved)).toBeLessThan(1.2);
  });
});

/** Two releases of the Worker run side by side during a deploy, and both have to see the same ring. */
test("the ring is the same in every release", () => {
  const owners = ownersOf(["a", "b", "c"]).join("");
  expect(owners.slice(0, 60)).toBe("aaccbcaaaaabaaacbbaaaaacaacccbbccbccbbaaacbbaccbbcbbaacbccaa");
  expect(bucketsOf("pullér-1", ["pullér-1", "puller-2"]).slice(0, 10)).toEqual([
    0, 5, 6, 7, 8, 9, 10, 11, 12, 13,
  ]);
});

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
