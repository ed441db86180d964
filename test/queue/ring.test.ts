// Drains as workers on the ring, with the real claim: what a drain takes beside another worker, and that it leaves.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { bucketsOf } from "../../src/core/policy/hash-ring.ts";
import { liveWorkers } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/index.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueueAll } from "../../src/queue/enqueue.ts";
import { createCountingDatabase } from "../support/counting-database.ts";
import { createTestPorts, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const { query } = verbsOf(db);
const counting = createCountingDatabase(db);
let seenWorkers: string[][] = [];
const work = defineJob("work", {
  payload: z.object({ n: z.number() }),
  queue: "orders",
  timeoutSeconds: 10,
  run: async () => {
    seenWorkers.push((await db.run(liveWorkers({ queue: "orders" }))).map(({ id }) => id));
    return null;
  },
});
const ports = createTestPorts(counting, [work]);
const budget = { ...roomyBudget, maxBatch: 10 };
const drain = (worker = "d1") => drainQueue(ports, { queue: "orders", budget, worker });
const register = (id: string) => query("select sluice.register_worker($1, '{orders}', 'puller')", [id]);
const enqueue = (jobs: number, partitionKey: (n: number) => string | null) =>
  enqueueAll(
    ports,
    times(jobs, (n) => ({ type: "work", queue: "orders", payload: { n }, partitionKey: partitionKey(n) })),
  );
const bucketsOfPending = async () =>
  (
    await query<{ bucket: number }>(
      "select partition_bucket as bucket from sluice.jobs where status = 'pending' and partition_key is not null",
    )
  ).map(({ bucket }) => bucket);

beforeEach(async () => {
  await emptyQueue(db.pool);
  counting.takeCounts();
  seenWorkers = [];
});

describe("a drain", () => {
  test("of one batch joins no ring", async () => {
    await enqueue(5, (n) => `k${n}`);
    expect(await drain()).toMatchObject({ completed: 5 });
    expect(seenWorkers.flat()).toEqual([]);
    expect(counting.takeCounts()["remove worker"]).toBeUndefined();
  });

  test("of jobs without a partition key joins no ring", async () => {
    await enqueue(50, () => null);
    expect(await drain()).toMatchObject({ completed: 50 });
    expect(seenWorkers.flat()).toEqual([]);
  });

  test("that is alone takes from all buckets, and leaves at its end", async () => {
    await enqueue(200, (n) => `k${n % 100}`);
    expect(await drain()).toMatchObject({ completed: 200 });
    expect(seenWorkers.some((workers) => workers.includes("d1"))).toBe(true);
    expect(counting.takeCounts()).toMatchObject({ "remove worker": 1 });
    expect(await db.run(liveWorkers())).toEqual([]);
  });

  test("beside another worker takes from its own buckets only, after its first claim", async () => {
    await register("other");
    await enqueue(200, (n) => `k${n}`);
    const { completed } = await drain();
    const { claim = 0 } = counting.takeCounts();
    const others = new Set(bucketsOf("other", ["d1", "other"]));
    const left = await bucketsOfPending();
    expect(left.length).toBeGreaterThan(20); // of keys that got no turn before it was on the ring
    expect(left.filter((bucket) => !others.has(bucket))).toEqual([]);
    expect(completed).toBe(200 - left.length);
    expect(claim).toBeLessThanOrEqual(completed / 7 + 10);
    expect((await db.run(liveWorkers())).map(({ id }) => id)).toEqual(["other"]);
  });

  test("beside another worker takes jobs without a partition key as before", async () => {
    await register("other");
    await enqueue(200, (n) => (n < 100 ? `k${n}` : null));
    await drain();
    expect(await query("select from sluice.jobs where status = 'pending' and partition_key is null")).toEqual(
      [],
    );
  });
});

test("several drains at once complete all jobs, and all of them leave", async () => {
  await enqueue(300, (n) => `k${n % 50}`);
  await Promise.all(times(4, (n) => drain(`d${n}`)));
  expect(seenWorkers.some((workers) => workers.length > 1)).toBe(true);
  expect(await db.run(liveWorkers())).toEqual([]);
  await drain("d9"); // what a drain that ended last left to one that had just left
  expect(await query("select from sluice.jobs where status <> 'completed'")).toEqual([]);
});
