// cancel: a pending job never runs, and nothing else can be cancelled.
import { beforeEach, describe, expect, test } from "vitest";
import { cancel } from "../../src/core/sql/index.ts";
import { oneOfEach } from "../support/one-of-each.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const isCancelled = (id: string) => queue.isApplied(cancel(id));

test.each([{}, { delaySeconds: 60 }])("a pending job (%o) is cancelled and never runs", async (fields) => {
  const id = await queue.enqueueOne(fields);
  expect(await isCancelled(id)).toBe(true);
  expect(await queue.find(id)).toMatchObject({ status: "cancelled", attempts: 0, deadReason: null });
  await queue.query("update sluice.scheduled set run_at = now()");
  expect(await queue.claim()).toEqual([]);
  expect(await isCancelled(id)).toBe(false);
});

test("a job that waits for its next attempt is cancelled and keeps its errors", async () => {
  const id = await queue.enqueueOne();
  await queue.settle([await queue.claimOne()], { kind: "retry", message: "busy", retryInSeconds: 60 });
  expect(await isCancelled(id)).toBe(true);
  expect(await queue.find(id)).toMatchObject({
    status: "cancelled",
    attempts: 1,
    errors: [{ message: "busy" }],
  });
});

test("only a pending job can be cancelled", async () => {
  const answers: Record<string, boolean> = {};
  for (const [state, id] of Object.entries(await oneOfEach(db, queue)))
    answers[state] = await isCancelled(id);
  expect(Object.keys(answers).filter((state) => answers[state])).toEqual(["ready", "scheduled"]);
});

test("when a claim and a cancel run concurrently, exactly one gets the job", {
  timeout: 20_000,
}, async () => {
  for (let round = 0; round < 30; round++) {
    const id = await queue.enqueueOne();
    const [claimed, cancelled] = await Promise.all([queue.claim(), isCancelled(id)]);
    expect([claimed.length, cancelled]).toEqual(cancelled ? [0, true] : [1, false]);
    expect(await queue.find(id)).toMatchObject({ status: cancelled ? "cancelled" : "processing" });
  }
});

describe("the answer", () => {
  test("is the job as find shows it, whether it was cancelled or not", async () => {
    const { unknown, ...jobs } = await oneOfEach(db, queue, { tags: ["x"], payload: { a: [1.5, "ä"] } });
    for (const id of Object.values(jobs))
      expect((await db.run(cancel(id)))?.job).toEqual(await queue.find(id));
    expect(await db.run(cancel(unknown))).toBe(null);
  });

  test("is null when the caller may not use the job's type, and the job stays pending", async () => {
    const id = await queue.enqueueOne();
    expect(await db.run(cancel(id, { types: ["other"] }))).toBe(null);
    expect(await queue.find(id)).toMatchObject({ status: "pending" });
    expect(await queue.isApplied(cancel(id, { types: ["other", "echo"] }))).toBe(true);
  });

  test("says that a job of Sluice's own was not cancelled", async () => {
    const id = await queue.enqueueOne({ type: "sluice.canary" });
    expect(await isCancelled(id)).toBe(false);
    expect(await queue.find(id)).toMatchObject({ status: "pending" });
  });
});
