// The numbers of types: what the last hour's attempts did, how long jobs took, and what holds a type back.
import { beforeEach, expect, test } from "vitest";
import { foldLedger, openBreaker, pause, prune, typeNumbers } from "../../src/core/sql/index.ts";
import type { LimitedType } from "../../src/core/type-limits.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const fold = () => db.run(foldLedger({ limit: 1000 }));
const numbersOf = async (type: string, types: LimitedType[] = []) =>
  (await db.run(typeNumbers(types))).find((numbers) => numbers.type === type);

test.each([false, true])("count what the attempts of the last hour did (folded: %s)", async (isFolded) => {
  await queue.enqueue(...times(10, () => ({ type: "a" })), { type: "b" });
  const jobs = await queue.claim({ types: ["a"], limit: 8 });
  await queue.settle(jobs.slice(0, 5), complete);
  await queue.settle(jobs.slice(5, 7), { kind: "retry", message: "", retryInSeconds: 60 });
  await queue.settle(jobs.slice(7), { kind: "bury", message: "" });
  if (isFolded) await fold();
  const counts = { enqueued: 10, completed: 5, failed: 3, retried: 2, died: 1 };
  expect(await numbersOf("a")).toMatchObject({ ...counts, pausedSince: null, breaker: null, inUse: null });
  expect(await numbersOf("b")).toMatchObject({ enqueued: 1, completed: 0, failed: 0 });
});

test("leave out what is older than an hour, and the canary", async () => {
  await queue.enqueueOne({ type: "a" });
  await queue.query("update sluice.ledger set at = now() - interval '61 minutes'");
  await queue.enqueueOne({ type: "sluice.canary", queue: "sluice" });
  await fold();
  expect(await db.run(typeNumbers([]))).toMatchObject([{ type: "a", enqueued: 0 }]);
});

test("percentiles are those of the last hour, by the bounds of the histograms", async () => {
  await queue.enqueueOne({ type: "a" });
  await queue.query(
    `insert into sluice.ledger (at, lane, completed, processing_seconds, waiting_seconds)
     select now() - ago, lane, jobs, seconds, array_fill(seconds, array[jobs])
     from sluice.lane,
     (values (interval '20 minutes', 90, 0.2::real), ('30 minutes', 10, 20), ('3 hours', 1000, 600)) as taken(ago, jobs, seconds)`,
  );
  await fold();
  const numbers = await numbersOf("a");
  for (const percentiles of [numbers?.waiting, numbers?.processing]) {
    expect(percentiles?.jobs).toBe(100);
    expect(percentiles?.p50Seconds).toBeGreaterThan(0.1);
    expect(percentiles?.p50Seconds).toBeLessThanOrEqual(0.25);
    expect(percentiles?.p95Seconds).toBeGreaterThan(10);
    expect(percentiles?.p95Seconds).toBeLessThanOrEqual(30);
  }
  await db.run(prune({ limit: 1000 }));
  const rows = await queue.query("select from sluice.recent_duration where at < now() - interval '2 hours'");
  expect(rows).toEqual([]);
  expect((await numbersOf("a"))?.waiting?.jobs).toBe(100);
});

test("show the pause, the breaker, and what counts against the limits", async () => {
  const limits = { concurrency: 5, rate: { limit: 4, perSeconds: 60 } };
  const types = [{ type: "limited", limits }, { type: "unused" }];
  await queue.enqueue(...times(6, () => ({ type: "limited" })));
  await queue.claim({ types, limit: 3 });
  await db.run(pause("ann", { type: "limited" }));
  await db.run(openBreaker("limited"));
  expect(await numbersOf("limited", types)).toMatchObject({
    inUse: { running: 3, started: 3 },
    pausedSince: expect.any(Date),
    breaker: { openedAt: expect.any(Date), closedAt: null },
  });
  expect(await numbersOf("unused", types)).toMatchObject({ completed: 0, inUse: null, waiting: null });
});
