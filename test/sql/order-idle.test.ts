// A claim of a queue with keys that finds nothing: it says so, it writes nothing, and it does not wait long for another claim.
import { beforeEach, describe, expect, test } from "vitest";
import { openBreaker, pause, snapshot } from "../../src/core/sql/index.ts";
import { keyedJobsOf } from "../support/keyed-jobs.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only } from "../support/verbs.ts";

const db = useTestDatabase();
const ordered = keyedJobsOf(db);
const fair = keyedJobsOf(db, "fairKey");
const { verbs } = ordered;
beforeEach(() => emptyQueue(db.pool));

const bury = { kind: "bury", message: "no use" } as const;
const retry = { kind: "retry", message: "busy", retryInSeconds: 60 } as const;

const reasons: [title: string, options: object, make: () => Promise<unknown>][] = [
  ["another job of the key runs", {}, () => ordered.put("a1 a2").then(() => ordered.take())],
  [
    "another job of the key waits for its retry",
    {},
    async () => {
      await ordered.put("a1 a2");
      await ordered.take();
      await ordered.end("a1", retry);
    },
  ],
  [
    "a dead job blocks the key",
    {},
    async () => {
      await ordered.put("a1 a2");
      await ordered.take();
      await ordered.end("a1", bury);
    },
  ],
  [
    "the first job of the key is of a type that the claim does not ask for",
    {},
    async () => {
      await ordered.put("a1", { type: "other" });
      await ordered.put("a2");
    },
  ],
  [
    "the first job of the key is of a paused type",
    { types: ["echo", "other"] },
    async () => {
      await ordered.put("a1", { type: "other" });
      await ordered.put("a2");
      await db.run(pause("ann", { type: "other" }));
    },
  ],
  ["all jobs are of a type that the claim does not ask for", {}, () => fair.put("a1 a2", { type: "other" })],
  [
    "all jobs are of a paused type",
    {},
    async () => {
      await fair.put("a1 a2");
      await ordered.put("a3 a4");
      await db.run(pause("ann", { type: "echo" }));
    },
  ],
  [
    "the queue is paused",
    {},
    async () => {
      await fair.put("a1 a2");
      await ordered.put("a3 a4");
      await db.run(pause("ann", { queue: "default" }));
    },
  ],
  [
    "the fair key has as many running jobs as its cap",
    { policy: { concurrency: 1 } },
    () => fair.put("a1 a2").then(() => fair.take({ policy: { concurrency: 1 } })),
  ],
  [
    "the fair key's rate does not allow a start yet",
    { policy: { secondsApart: 3600 } },
    () => fair.put("a1 a2 a3").then(() => fair.take({ policy: { secondsApart: 3600 } })),
  ],
  [
    "the key is in a bucket of another worker",
    { buckets: [] },
    async () => {
      await ordered.put("a1 a2");
    },
  ],
];

describe.each(reasons)("a claim that finds nothing, because %s,", (_, options, make) => {
  test("says that there is no more, and after a few times writes nothing", async () => {
    await make();
    for (let n = 0; n < 3; n++) await verbs.claim(options);
    const before = await written();
    for (let n = 0; n < 5; n++) {
      const { jobs, hasMore } = await verbs.claimBatch(options);
      expect([jobs, hasMore]).toEqual([[], false]);
    }
    expect(await written()).toEqual(before);
  });
});

/** Positions that move when a claim writes anything about keys. */
async function written(): Promise<object> {
  return only(
    await verbs.query(`
      select (select last_value from sluice.ready_seq) as seq, (select max(version) from sluice.key_cursor) as cursor,
             (select array_agg(xmin::text order by key) from sluice.key_state) as states`),
  );
}

test("a claim whose breaker is open says that there is no more", async () => {
  await ordered.put("a1 a2");
  await db.run(openBreaker("echo"));
  await verbs.claim();
  expect(await verbs.claimBatch()).toMatchObject({ jobs: [], hasMore: false });
});

test("a claim beside another one that stays open takes jobs without keys, says that there is more, and is quick", async () => {
  await ordered.put("a1 b1 b2");
  await verbs.enqueue({ payload: { name: "plain1" } }, { payload: { name: "plain2" } });
  await inSession(db.pool, async (client) => {
    await client.query("begin");
    await client.query("select sluice.claim('default', '{echo}', 1, 60)");
    const startedAt = performance.now();
    const { jobs, hasMore } = await verbs.claimBatch();
    expect(performance.now() - startedAt).toBeLessThan(2000);
    expect(jobs.every((job) => job.partitionKey === null)).toBe(true);
    expect(jobs.length).toBeGreaterThan(0);
    expect(hasMore).toBe(true);
    await client.query("rollback");
  });
  expect((await ordered.drain()).split(" ").toSorted()).toEqual(expect.arrayContaining(["a1", "b1", "b2"]));
});

test("a snapshot counts jobs that wait for their key, and says how long the oldest has waited", async () => {
  await ordered.put("a1 a2 a3");
  await fair.put("c1 c2", { priority: 3 });
  const before = await db.run(snapshot());
  expect(before.groups).toMatchObject([
    { priority: 3, pending: 2, oldestDueSeconds: expect.any(Number) },
    { priority: 5, pending: 3, oldestDueSeconds: expect.any(Number) },
  ]);
  await ordered.take({ limit: 1 });
  const { groups } = await db.run(snapshot());
  expect(groups.find((group) => group.priority === 5)).toMatchObject({
    pending: 2,
    leased: 1,
    oldestDueSeconds: expect.any(Number),
  });
});
