// Claims by buckets: a worker on the ring gets jobs with partition keys of its own buckets, and the others wait for theirs.
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { ClaimedJob } from "../../src/core/job.ts";
import { bucketCount, bucketsOf, ownersOf, placeOf } from "../../src/core/policy/hash-ring.ts";
import { reapLeases } from "../../src/core/sql/index.ts";
import { scansOf, watchStatements } from "../support/explain.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const { enqueue, claimBatch, settle, query } = verbsOf(db);
const client = new pg.Client({ connectionString: db.url });
beforeAll(() => client.connect());
afterAll(() => client.end());
beforeEach(() => emptyQueue(db.pool));
afterEach(async () => expect(await wrongKeys(db.pool)).toEqual([]));

const ids = ["w1", "w2"];
const put = (jobs: number, keys = jobs) =>
  enqueue(...times(jobs, (n) => ({ partitionKey: `k${n % keys}`, payload: { n } })));
const claimAs = (id: string, options: { limit?: number; leaseSeconds?: number } = {}) =>
  claimBatch({ worker: id, ...placeOf(id, ownersOf(ids)), ...options });
const backoffs = { echo: { baseSeconds: 0, maxSeconds: 0, jitterSeconds: 0 } };

/** Claims and completes until there is no more. */
async function workAs(id: string): Promise<ClaimedJob[]> {
  const done: ClaimedJob[] = [];
  for (let jobs = (await claimAs(id)).jobs; jobs.length > 0; jobs = (await claimAs(id)).jobs) {
    done.push(...jobs);
    await settle(jobs, complete);
  }
  return done;
}

test("each worker completes the jobs of its own buckets, in order, and together they complete all", async () => {
  await put(300, 60);
  const bucketOf = new Map(
    (
      await query<{ key: string; bucket: number }>(
        "select partition_key as key, partition_bucket as bucket from sluice.jobs",
      )
    ).map(({ key, bucket }) => [key, bucket]),
  );
  const done = [];
  for (const id of ids) {
    const own = new Set(bucketsOf(id, ids));
    const jobs = await workAs(id);
    expect(jobs.filter((job) => !own.has(bucketOf.get(job.partitionKey ?? "") ?? -1))).toEqual([]);
    for (const ofKey of Map.groupBy(jobs, (job) => job.partitionKey).values())
      expect(ofKey.map(({ payload }) => payload.n)).toEqual(
        ofKey.map(({ payload }) => payload.n).toSorted(byNumber),
      );
    done.push(...jobs);
  }
  expect(done).toHaveLength(300);
});

test("a claim for one job finds one of its own keys, however many of other workers come first", async () => {
  await put(100);
  const own = await claimAs("w1", { limit: 100 });
  await settle(own.jobs, complete);
  await workAs("w2");
  const rows = await query<{ key: string; bucket: number }>(
    "select partition_key as key, partition_bucket as bucket from sluice.jobs",
  );
  const isOwn = new Set(bucketsOf("w1", ids));
  const keys = (isWanted: boolean) =>
    rows.filter(({ bucket }) => isOwn.has(bucket) === isWanted).map(({ key }) => key);
  await enqueue(...[...keys(false), ...keys(true)].map((partitionKey) => ({ partitionKey, payload: {} })));
  expect((await claimAs("w1", { limit: 1 })).jobs).toHaveLength(1);
});

test("a claim of a worker that owns nothing gives out few turns, and is empty", async () => {
  await put(2_000);
  const owners = Array.from({ length: bucketCount }, () => 0);
  expect((await claimBatch({ worker: "w3", buckets: [], owners, limit: 10 })).jobs).toEqual([]);
  const [given] = await query<{ keys: number }>(
    "select sum(cardinality(keys))::int as keys from sluice.turn_grant",
  );
  expect(given?.keys).toBeGreaterThanOrEqual(100);
  expect(given?.keys).toBeLessThan(500);
});

test("a claim that finds nothing in its own buckets says that there is no more", async () => {
  await put(100);
  await workAs("w1");
  expect(await claimAs("w1")).toMatchObject({ jobs: [], hasMore: false });
});

test("turns that came back wait for the worker that owns their buckets, and after a while they are anybody's", async () => {
  await put(80, 40);
  const { jobs } = await claimAs("w1");
  await settle(jobs, complete);
  await workAs("w2");
  expect(await claimAs("w2")).toMatchObject({ jobs: [], hasMore: false });
  expect(await turnsInLanes()).toBe(0);
  for (let marks = 0; marks < 2; marks++) {
    await query("update sluice.key_cursor set next_at = next_at - interval '16 s'");
    await claimAs("w2", { limit: 1 });
  }
  expect((await workAs("w2")).length).toBeGreaterThanOrEqual(jobs.length - 1);
});

const turnsInLanes = async () =>
  (await query("select from sluice.ready where place is not null and returned is null")).length;

test("a worker gets its own isolated jobs while older jobs wait for another worker", async () => {
  await put(60);
  const { jobs } = await claimAs("w1", { leaseSeconds: -1 });
  expect(jobs.length).toBeGreaterThan(10);
  await db.run(reapLeases({ limit: 100, backoffs }));
  const again = await workAs("w1");
  expect(again.map(({ id }) => id).toSorted()).toEqual(jobs.map(({ id }) => id).toSorted());
});

test("a claim by buckets finds its own turns by an index, and reads no whole table", async () => {
  await put(500);
  const watch = await watchStatements(client);
  for (const [round, id] of [...ids, ...ids].entries()) {
    await client.query("select sluice.claim('default', array['echo'], 10, 60, $1, p_buckets => $2)", [
      id,
      bucketsOf(id, ids),
    ]);
    const scans = scansOf(watch.take());
    expect(scans.filter(({ relation, index }) => relation === "ready" && index === null)).toEqual([]);
    if (round > 1) expect(scans.map(({ index }) => index)).toContain("ready_by_bucket");
  }
});

function byNumber(a: unknown, b: unknown): number {
  return Number(a) - Number(b);
}
