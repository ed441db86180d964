import { beforeEach, expect, test } from "vitest";
import * as z from "zod";
import { RetryableError, Snooze } from "../../src/core/errors.ts";
import { claim, findJob } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { drain } from "../../src/queue/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { reap } from "../../src/queue/reap.ts";
import { watch } from "../../src/queue/watch.ts";
import { newJob } from "../support/jobs.ts";
import { createTestQueue } from "../support/queue.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const any = z.object({});
const queue = createTestQueue(db, [
  defineJob("echo", { payload: z.record(z.string(), z.json()), run: (payload) => payload }),
  defineJob("stubborn", { payload: any, timeoutSeconds: 0.05, run: () => new Promise(() => {}) }),
  defineJob("patient", {
    payload: any,
    run: () => Promise.reject(new RetryableError("busy", { retryInSeconds: 7 })),
  }),
  defineJob("sleepy", { payload: any, run: () => Promise.reject(new Snooze(9)) }),
  defineJob("strict", { payload: z.object({ name: z.string() }), run: () => "ok" }),
  defineJob("heavy", { payload: any, queue: "heavy", run: () => "lifted" }),
]);

beforeEach(async () => {
  await emptyQueue(db.pool);
  queue.events.length = 0;
});

async function drained(fields: Parameters<typeof newJob>[0]) {
  const { id } = await enqueue(queue, newJob(fields));
  await drain(queue);
  const [job] = await db.run(findJob(id));
  if (!job) throw new Error("the job is gone");
  return job;
}

const secondsFromNow = (at: Date) => (at.getTime() - Date.now()) / 1000;

test("a job is completed with what its handler returned", async () => {
  expect(await drained({ payload: { a: [1, null] } })).toMatchObject({
    status: "completed",
    output: { a: [1, null] },
  });
});

test("a handler that ignores its time-out fails all the same", async () => {
  const job = await drained({ type: "stubborn" });
  expect(job).toMatchObject({
    status: "pending",
    attempts: 1,
    errors: [{ message: "timed out after 0.05 s" }],
  });
  expect(secondsFromNow(job.scheduledAt)).toBeGreaterThan(30);
});

test("a handler says when it wants to be tried again", async () => {
  const job = await drained({ type: "patient" });
  expect(job).toMatchObject({ attempts: 1, errors: [{ message: "busy" }] });
  expect(secondsFromNow(job.scheduledAt)).toBeGreaterThan(5);
  expect(secondsFromNow(job.scheduledAt)).toBeLessThan(8);
});

test("a snooze uses up no attempt", async () => {
  expect(await drained({ type: "sleepy" })).toMatchObject({ status: "pending", attempts: 0, errors: [] });
});

test("an old payload that no longer fits is dead, not a crash (J8)", async () => {
  expect(await drained({ type: "strict", payload: { name: 1 } })).toMatchObject({
    status: "dead",
    deadReason: "fatal",
  });
});

test("every queue that a type works in is drained", async () => {
  expect(await drained({ type: "heavy", queue: "heavy" })).toMatchObject({
    status: "completed",
    output: "lifted",
  });
});

test("a drain goes on until the queue is empty", async () => {
  await Promise.all(Array.from({ length: 25 }, () => enqueue(queue, newJob())));
  const budget = { claimForMs: 25_000, subrequests: 50, batchSize: 10, maxTimeoutSeconds: 840 };
  expect(await drain(queue, budget)).toEqual({ claimed: 25, settled: 25, end: "empty" });
});

test("a drain stops at its subrequests and leaves the rest pending", async () => {
  await Promise.all(Array.from({ length: 25 }, () => enqueue(queue, newJob())));
  const budget = { claimForMs: 25_000, subrequests: 4, batchSize: 10, maxTimeoutSeconds: 840 };
  expect(await drain(queue, budget)).toMatchObject({ claimed: 10, end: "subrequests" });
});

test("a drain that has little time leaves types that may take long to another", async () => {
  await enqueue(queue, newJob());
  const budget = { claimForMs: 25_000, subrequests: 50, batchSize: 10, maxTimeoutSeconds: 15 };
  expect(await drain(queue, budget)).toEqual({ claimed: 0, settled: 0, end: "empty" });
});

test("two drains at once share the work and do none of it twice", async () => {
  await Promise.all(Array.from({ length: 100 }, () => enqueue(queue, newJob())));
  const reports = await Promise.all([drain(queue), drain(queue)]);
  expect(reports.reduce((sum, report) => sum + report.settled, 0)).toBe(100);
  expect(queue.events).toEqual([]);
});

test("the reap round brings back what a dead drain held", async () => {
  await enqueue(queue, newJob());
  await db.run(claim({ queue: "default", types: ["echo"], limit: 1, leaseSeconds: 0 }));
  expect(await reap(queue)).toMatchObject({ leases: { returned: 1, buried: 0 } });
  expect(await reap(queue)).toMatchObject({ leases: { returned: 0, buried: 0 } });
});

test("the watch round says aloud that leases that ran out are not reaped", async () => {
  await enqueue(queue, newJob());
  await watch(queue);
  expect(queue.events).toEqual([]);
  await db.run(claim({ queue: "default", types: ["echo"], limit: 1, leaseSeconds: -600 }));
  await watch(queue);
  expect(queue.events).toMatchObject([{ level: "error", event: "expired leases are not reaped" }]);
});
