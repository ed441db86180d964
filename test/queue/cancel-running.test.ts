// Somebody cancels a running job: its drain sees it within seconds and stops the handler.
import { beforeEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { cancel } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { defineBatchJob } from "../../src/jobs/define-batch.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { createCountingDatabase } from "../support/counting-database.ts";
import { newJob } from "../support/jobs.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const counting = createCountingDatabase(db);
const any = z.looseObject({});
const started: { payload: object; signal: AbortSignal; end(): void }[] = [];
const batches: { signal: AbortSignal; end(): void }[] = [];
const ports = createTestPorts(counting, [
  defineJob("gated", {
    payload: any,
    run: (payload, { signal }) =>
      new Promise<void>((end) => {
        started.push({ payload, signal, end });
      }),
  }),
  defineBatchJob("bulk", {
    payload: any,
    run: (jobs, { signal }) =>
      new Promise((resolve) => {
        const end = () => resolve(jobs.map(() => ({ output: "done" })));
        batches.push({ signal, end });
      }),
  }),
]);
const clock = createManualClock();
const stopAfterMs = 8_000;

beforeEach(async () => {
  await emptyQueue(db.pool);
  started.length = 0;
  batches.length = 0;
  counting.takeCounts();
});

const drain = () => drainQueue({ ...ports, clock }, { queue: "default", budget: roomyBudget });
const stop = (id: string) => db.run(cancel(id, { running: true }));
const until = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 2 });

/** Moves the clock in small steps, so that each timer runs at its time. */
async function advance(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    clock.advance(500);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("its signal is aborted within 8 s, and it ends as cancelled without another attempt", async () => {
  const { id } = await enqueue(ports, newJob({ type: "gated" }));
  const report = drain();
  await until(() => expect(started).toHaveLength(1));
  await stop(id);
  await advance(stopAfterMs);
  await until(() => expect(started[0]?.signal.aborted).toBe(true));
  expect(started[0]?.signal.reason).toMatchObject({ name: "CancelledError" });
  await report;
  expect(await lookAt(db, id)).toMatchObject({ status: "cancelled", errors: [] });
  expect(started).toHaveLength(1);
});

test("a handler that ends before the drain looks has completed its job", async () => {
  const { id } = await enqueue(ports, newJob({ type: "gated" }));
  const report = drain();
  await until(() => expect(started).toHaveLength(1));
  await stop(id);
  started[0]?.end();
  await advance(200);
  await report;
  expect(await lookAt(db, id)).toMatchObject({ status: "completed" });
});

test("a drain looks only for jobs that have run for more than four seconds", async () => {
  await enqueue(ports, newJob({ type: "gated" }));
  const report = drain();
  await until(() => expect(started).toHaveLength(1));
  await advance(4_500);
  expect(counting.takeCounts()).not.toHaveProperty("find cancel requests");
  await advance(4_000);
  await until(() => expect(counting.takeCounts()).toHaveProperty("find cancel requests", 1));
  started[0]?.end();
  await advance(200);
  await report;
});

test("a job that waits in its run is not started, and those behind it run later", async () => {
  for (const n of [1, 2, 3]) {
    await enqueue(ports, newJob({ type: "gated", payload: { n }, partitionKey: "k" }));
  }
  const { rows } = await db.pool.query<{ id: string }>("select id from sluice.job order by id");
  const report = drain();
  await until(() => expect(started).toHaveLength(1));
  await stop(rows[1]?.id ?? "");
  await advance(stopAfterMs + 500);
  expect(started[0]?.signal.aborted).toBe(false);
  started[0]?.end();
  for (let n = 0; n < 100 && started.length < 2; n++) await advance(500);
  expect(started[1]?.payload).toEqual({ n: 3 });
  started[1]?.end();
  await advance(1_000);
  await report;
  const statuses = await Promise.all(rows.map(async ({ id }) => (await lookAt(db, id)).status));
  expect(statuses).toEqual(["completed", "cancelled", "completed"]);
});

test("a batch goes on for its other jobs, and is aborted when all of them are cancelled", async () => {
  const ids: string[] = [];
  for (let n = 0; n < 2; n++) ids.push((await enqueue(ports, newJob({ type: "bulk" }))).id);
  const report = drain();
  await until(() => expect(batches).toHaveLength(1));
  await stop(ids[0] ?? "");
  await advance(stopAfterMs + 500);
  expect(batches[0]?.signal.aborted).toBe(false);
  await stop(ids[1] ?? "");
  await advance(stopAfterMs);
  await until(() => expect(batches[0]?.signal.aborted).toBe(true));
  await report;
  for (const id of ids) expect(await lookAt(db, id)).toMatchObject({ status: "cancelled" });
});
