// pause and resume: the jobs of a paused queue or type wait, and all other jobs are claimed.
import { beforeEach, expect, test } from "vitest";
import { pause, resume } from "../../src/core/sql/index.ts";
import { sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

test("no job of a paused queue is claimed until the queue is resumed", async () => {
  await queue.enqueue({ queue: "heavy" }, { queue: "heavy", type: "other" }, {});
  expect(await db.run(pause("ann", { queue: "heavy" }))).toBe(true);
  expect(await queue.claim({ queue: "heavy", types: ["echo", "other"] })).toEqual([]);
  expect(await queue.claim()).toHaveLength(1);
  expect(await db.run(resume("ann", { queue: "heavy" }))).toBe(true);
  expect(await queue.claim({ queue: "heavy", types: ["echo", "other"] })).toHaveLength(2);
});

test("a paused type is claimed in no queue, and other types are", async () => {
  await queue.enqueue({ priority: 9 }, { queue: "heavy" }, { type: "other" });
  await db.run(pause("ann", { type: "echo" }));
  expect(await queue.claim({ types: ["echo", "other"] })).toMatchObject([{ type: "other" }]);
  expect(await queue.claim({ queue: "heavy" })).toEqual([]);
  await db.run(resume("ann", { type: "echo" }));
  expect(await queue.claim({ types: ["echo", "other"] })).toHaveLength(1);
  expect(await queue.claim({ queue: "heavy" })).toHaveLength(1);
});

test("a claim does not count the jobs of a paused type as more", async () => {
  await queue.enqueue(...times(10, () => ({})), ...times(3, () => ({ type: "other" })));
  await db.run(pause("ann", { type: "echo" }));
  for (const [size, hasMore] of [
    [2, true],
    [1, false],
  ] as const) {
    const batch = await queue.claimBatch({ types: ["echo", "other"], limit: 2 });
    expect([batch.jobs.length, batch.hasMore]).toEqual([size, hasMore]);
  }
});

test("a queue and a type with the same name are paused separately", async () => {
  await queue.enqueue({ type: "same" }, { queue: "same" });
  await db.run(pause("ann", { queue: "same" }));
  expect(await queue.claim({ types: ["same"] })).toHaveLength(1);
  expect(await queue.claim({ queue: "same" })).toEqual([]);
});

test("a paused queue still accepts jobs, and its claimed jobs may complete", async () => {
  await queue.enqueueOne();
  const job = await queue.claimOne();
  await db.run(pause("ann", { type: "echo" }));
  expect(await queue.settle([job], complete)).toMatchObject([{ applied: true }]);
  const id = await queue.enqueueOne();
  expect(await queue.find(id)).toMatchObject({ status: "pending" });
});

test("a second pause or resume changes nothing, and the answer says so", async () => {
  expect(await db.run(resume("ann", { type: "echo" }))).toBe(false);
  expect(await db.run(pause("ann", { type: "echo" }))).toBe(true);
  expect(await db.run(pause("ann", { type: "echo" }))).toBe(false);
  expect(await db.run(resume("ann", { type: "echo" }))).toBe(true);
  const answers = await Promise.all(times(8, () => db.run(pause("ann", { queue: "default" }))));
  expect(answers.filter(Boolean)).toHaveLength(1);
});

test("only queues and types can be paused", async () => {
  expect(await sqlState(queue.query("select sluice.pause('ann', 'job', 'x')"))).toBe("23514");
});
