// A drain claims, runs and settles jobs within its budget, and a handler's result decides what becomes of its job.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { RetryableError, Snooze } from "../../src/core/errors.ts";
import { claim, reapLeases } from "../../src/core/sql/index.ts";
import { defineJob, definePulledJob } from "../../src/jobs/define.ts";
import { defineBatchJob } from "../../src/jobs/define-batch.ts";
import { defineReconciledJob } from "../../src/jobs/define-reconciled.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { bringForward } from "../model/gate/gate-time.ts";
import { createCountingDatabase } from "../support/counting-database.ts";
import { newJob } from "../support/jobs.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const counting = createCountingDatabase(db);
const any = z.object({});
const patience = { timeout: 10_000 };
const seen = {
  extended: 0,
  batches: [] as number[],
  gates: [] as (() => void)[],
  aborted: [] as unknown[],
  indexed: new Set<string>(),
};
const gated = defineJob("gated", {
  payload: any,
  run: (_, { signal }) =>
    new Promise<void>((resolve) => {
      seen.gates.push(resolve);
      signal.addEventListener("abort", () => seen.aborted.push(signal.reason));
    }),
});
const ports = createTestPorts(counting, [
  defineJob("echo", {
    payload: z.record(z.string(), z.json()),
    timeoutSeconds: 10,
    run: (payload) => payload,
  }),
  defineJob("stubborn", { payload: any, timeoutSeconds: 0.05, run: () => new Promise(() => {}) }),
  defineJob("longer", {
    payload: any,
    timeoutSeconds: 0.2,
    run: async (_, { extend, signal }) => {
      for (let n = 0; n < 4 && !signal.aborted; n++) {
        await new Promise((resolve) => setTimeout(resolve, 90));
        extend();
      }
      return "in time";
    },
  }),
  defineJob("patient", {
    payload: any,
    run: () => Promise.reject(new RetryableError("busy", { retryInSeconds: 7 })),
  }),
  defineJob("sleepy", { payload: any, run: () => Promise.reject(new Snooze(9)) }),
  defineJob("strict", { payload: z.object({ name: z.string() }), run: () => "ok" }),
  gated,
  // Shorter than a deployment may set it, so that the test sees the lease being extended.
  { ...gated, type: "brief", leaseSeconds: 1.5 },
  defineBatchJob("bulk", {
    payload: z.object({ n: z.number() }),
    run: async (jobs) => {
      seen.batches.push(jobs.length);
      return jobs.map(({ payload }) => ({ output: payload.n }));
    },
  }),
  definePulledJob("pulled", { payload: any }),
  defineReconciledJob("index", {
    payload: z.object({ row: z.string() }),
    observe: async (jobs) => jobs.map(({ payload }) => (seen.indexed.has(payload.row) ? "there" : "missing")),
    run: ({ row }) => void seen.indexed.add(row),
  }),
]);
const drainDefault = (budget = roomyBudget) => drainQueue(ports, { queue: "default", budget });

beforeEach(async () => {
  await emptyQueue(db.pool);
  ports.events.length = 0;
  Object.assign(seen, { batches: [], gates: [], aborted: [] });
  counting.takeCounts();
});

async function drained(fields: Parameters<typeof newJob>[0]) {
  const { id } = await enqueue(ports, newJob(fields));
  await drainQueue(ports, { queue: fields?.queue ?? "default", budget: roomyBudget });
  return lookAt(db, id);
}

const enqueueMany = (count: number, fields = {}) =>
  Promise.all(Array.from({ length: count }, (_, n) => enqueue(ports, newJob({ payload: { n }, ...fields }))));
const secondsFromNow = (at: Date) => (at.getTime() - Date.now()) / 1000;

describe("a handler", () => {
  test("completes its job with the output that it returns", async () => {
    expect(await drained({ payload: { a: [1, null] } })).toMatchObject({
      status: "completed",
      output: { a: [1, null] },
    });
  });

  test("that ignores its time-out fails", async () => {
    const job = await drained({ type: "stubborn" });
    expect(job).toMatchObject({
      status: "pending",
      attempts: 1,
      errors: [{ message: "timed out after 0.05 s" }],
    });
    expect(secondsFromNow(job.scheduledAt)).toBeGreaterThan(30);
  });

  test("is aborted after the default time-out of five minutes", async () => {
    const { id } = await enqueue(ports, newJob({ type: "gated" }));
    const clock = createManualClock();
    const ended = drainQueue({ ...ports, clock }, { queue: "default", budget: roomyBudget });
    await expect.poll(() => seen.gates.length).toBe(1);
    clock.advance(299_000);
    expect(seen.aborted).toHaveLength(0);
    clock.advance(1_000);
    expect(await ended).toMatchObject({ claimed: 1, failed: 1, end: "empty" });
    expect(await lookAt(db, id)).toMatchObject({ errors: [{ message: "timed out after 300 s" }] });
  });

  test("that asks for more time gets it", async () => {
    expect(await drained({ type: "longer" })).toMatchObject({ status: "completed", output: "in time" });
  });

  test("can set the time of its retry", async () => {
    const job = await drained({ type: "patient" });
    expect(job).toMatchObject({ attempts: 1, errors: [{ message: "busy" }] });
    expect(secondsFromNow(job.scheduledAt)).toBeGreaterThan(5);
    expect(secondsFromNow(job.scheduledAt)).toBeLessThan(8);
  });

  test("can snooze, and the attempt is not counted", async () => {
    expect(await drained({ type: "sleepy" })).toMatchObject({ status: "pending", attempts: 0, errors: [] });
  });

  test("never gets a payload that no longer fits its schema: the job is dead", async () => {
    expect(await drained({ type: "strict", payload: { name: 1 } })).toMatchObject({
      status: "dead",
      deadReason: "fatal",
    });
  });

  test("of a batch type gets all jobs in one call, and each job gets its own output", async () => {
    const jobs = await enqueueMany(30, { type: "bulk" });
    await drainDefault();
    expect(seen.batches).toEqual([30]);
    const last = jobs[29];
    expect(await lookAt(db, last?.id ?? "")).toMatchObject({ status: "completed", output: 29 });
  });

  test("of a reconciled type runs, and the job is completed once its effect is there", async () => {
    const job = await drained({ type: "index", payload: { row: "r1" } });
    expect(job).toMatchObject({ status: "pending", attempts: 1, errors: [] });
    expect(secondsFromNow(job.scheduledAt)).toBeGreaterThan(50);
    expect(seen.indexed).toEqual(new Set(["r1"]));
    await bringForward(db.pool);
    await drainDefault();
    expect(await lookAt(db, job.id)).toMatchObject({ status: "completed", attempts: 1, errors: [] });
  });

  test("is not needed for a pulled type, which drains do not claim", async () => {
    expect(await drained({ type: "pulled" })).toMatchObject({ status: "pending", attempts: 0 });
  });

  test("runs jobs of its type in any queue", async () => {
    expect(await drained({ queue: "other" })).toMatchObject({ status: "completed", queue: "other" });
  });
});

describe("a drain", () => {
  test("continues until the queue is empty, with one round trip for each batch and one at the end", async () => {
    await enqueueMany(25);
    counting.takeCounts();
    const report = await drainDefault({ ...roomyBudget, maxBatch: 10 });
    expect(report).toMatchObject({
      claimed: 25,
      completed: 25,
      failed: 0,
      released: 0,
      lost: 0,
      end: "empty",
    });
    expect(counting.takeCounts()).toEqual({ claim: 3, settle: 1 });
  });

  test("settles outputs that are too large for the next claim in separate calls", async () => {
    await enqueueMany(20, { payload: { text: "x".repeat(60_000) } });
    counting.takeCounts();
    expect(await drainDefault({ ...roomyBudget, maxBatch: 10 })).toMatchObject({ completed: 20, lost: 0 });
    expect(counting.takeCounts()).toEqual({ claim: 2, settle: 4 });
  });

  test("stops when its subrequests are used up, settles its jobs and leaves the rest", async () => {
    await enqueueMany(50);
    counting.takeCounts();
    const report = await drainDefault({ ...roomyBudget, maxBatch: 10, subrequests: 6 });
    expect(report).toMatchObject({ claimed: 40, completed: 40, end: "subrequests" });
    expect(counting.takeCounts()).toEqual({ claim: 4, settle: 1 });
  });

  test("claims no more when its time for claiming is over", async () => {
    await enqueueMany(5);
    expect(await drainDefault({ ...roomyBudget, claimForMs: 0 })).toMatchObject({ claimed: 0, end: "time" });
  });

  test("does not claim types whose time-out goes beyond its end", async () => {
    await enqueueMany(1, { type: "gated" });
    await enqueueMany(1);
    expect(await drainDefault({ ...roomyBudget, hardEndMs: 28_000 })).toMatchObject({
      claimed: 1,
      completed: 1,
    });
  });

  test("settles quick jobs while a slow one of the same batch still runs", async () => {
    await enqueueMany(1, { type: "gated" });
    const [quick] = await enqueueMany(20);
    const running = drainDefault();
    await expect.poll(async () => (await lookAt(db, quick?.id ?? "")).status, patience).toBe("completed");
    expect(seen.gates).toHaveLength(1);
    seen.gates[0]?.();
    expect(await running).toMatchObject({ completed: 21, end: "empty" });
  });

  test("shares the jobs with a concurrent drain, and no job runs twice", async () => {
    await enqueueMany(300);
    const reports = await Promise.all([drainDefault(), drainDefault()]);
    expect(reports.reduce((sum, report) => sum + report.completed, 0)).toBe(300);
    expect(ports.events).toEqual([]);
  });

  test("extends the leases of its handlers, and aborts a handler whose lease is lost", async () => {
    const [kept, lost] = await enqueueMany(2, { type: "brief" });
    const running = drainDefault();
    await expect.poll(() => seen.gates.length, patience).toBe(2);
    const [first] = (await db.pool.query<{ deadline: Date }>("select deadline from sluice.lease")).rows;
    const extended = "select from sluice.lease where deadline > $1::timestamptz + interval '0.3 s'";
    await expect
      .poll(async () => (await db.pool.query(extended, [first?.deadline])).rowCount, patience)
      .toBe(1);

    // One of the two loses its lease: it is split off, runs out and is reaped.
    await db.pool.query(
      "select from sluice.extend(array[$1]::uuid[], (select array_agg(key) from sluice.lease), 3000)",
      [kept?.id],
    );
    await db.pool.query("update sluice.lease set deadline = now() - interval '1 s' where $1 = any(ids)", [
      lost?.id,
    ]);
    await db.run(reapLeases({ limit: 10 }));
    await expect.poll(() => seen.aborted, patience).toMatchObject([{ name: "LeaseLostError" }]);
    for (const open of seen.gates) open();
    expect(await running).toMatchObject({ completed: 1, lost: 1 });
    expect(await lookAt(db, kept?.id ?? "")).toMatchObject({ status: "completed" });
    expect(await lookAt(db, lost?.id ?? "")).toMatchObject({ status: "pending", attempts: 1 });
  });

  test("runs an isolated group and nothing else, while another drain runs the other jobs", async () => {
    const isolated = await enqueueMany(40, { type: "gated" });
    await db.run(claim({ queue: "default", types: ["gated"], limit: 40, leaseSeconds: -1 }));
    await db.run(reapLeases({ limit: 100 }));
    await bringForward(db.pool);
    await db.pool.query("select sluice.promote_due(100, null)"); // so that they are older than the others
    await enqueueMany(30);
    let saidClaimed = 0;
    const first = drainQueue(ports, {
      queue: "default",
      budget: roomyBudget,
      onClaimed: () => saidClaimed++,
    });
    await expect.poll(() => seen.gates.length, patience).toBe(32);
    await expect.poll(() => saidClaimed, patience).toBeGreaterThan(0); // then a nudge may start another drain
    expect(await drainDefault()).toMatchObject({ claimed: 30, completed: 30, end: "empty" });
    expect(seen.gates).toHaveLength(32);
    for (const open of seen.gates) open();
    await expect.poll(() => seen.gates.length, patience).toBe(40);
    for (const open of seen.gates) open();
    expect(await first).toMatchObject({ claimed: 40, completed: 40 });
    expect(await lookAt(db, isolated[0]?.id ?? "")).toMatchObject({ status: "completed", attempts: 2 });
  });

  test("claims no isolated jobs while it runs other jobs", async () => {
    await enqueueMany(3, { type: "index", payload: { row: "r" } });
    await db.run(claim({ queue: "default", types: ["index"], limit: 3, leaseSeconds: -1 }));
    await db.run(reapLeases({ limit: 100 }));
    await enqueueMany(2, { type: "gated" });
    const running = drainDefault({ ...roomyBudget, maxBatch: 1 });
    await expect.poll(() => seen.gates.length, patience).toBe(1);
    await bringForward(db.pool);
    await expect.poll(() => seen.gates.length, patience).toBe(2);
    for (const open of seen.gates) open();
    await running;
    const { rows } = await db.pool.query(
      "select from sluice.failed_attempt where message <> 'the lease ran out'",
    );
    expect(rows).toEqual([]);
  });

  test("ends with an error when a claim fails", async () => {
    await enqueueMany(3);
    counting.failNext("claim", 1);
    expect(await drainDefault()).toMatchObject({ claimed: 0, end: "error" });
  });

  test("repeats a settle that failed", async () => {
    await enqueueMany(3);
    counting.failNext("settle", 2);
    expect(await drainDefault()).toMatchObject({ completed: 3, lost: 0, end: "error" });
  });
});
