// Reconciled types: a run and the check after it are one attempt, which fails only if the effect is missing.
import { beforeEach, expect, test } from "vitest";
import * as z from "zod";
import { books } from "../../src/core/sql/index.ts";
import { defineReconciledJob } from "../../src/jobs/define-reconciled.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { bringForward } from "../model/gate/gate-time.ts";
import { newJob } from "../support/jobs.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const seen = { rows: new Set<string>(), runs: 0, isBlind: false };
const ports = createTestPorts(db, [
  defineReconciledJob("index", {
    payload: z.object({ row: z.string() }),
    maxAttempts: 3,
    observe: async (jobs) => {
      if (seen.isBlind) throw new Error("no index");
      return jobs.map(({ payload }) => (seen.rows.has(payload.row) ? "there" : "missing"));
    },
    run: ({ row }) => {
      seen.runs++;
      if (!row.startsWith("never")) seen.rows.add(row);
    },
  }),
]);

beforeEach(async () => {
  await emptyQueue(db.pool);
  ports.events.length = 0;
  Object.assign(seen, { rows: new Set(), runs: 0, isBlind: false });
});

async function drainOnce() {
  await drainQueue(ports, { queue: "default", budget: roomyBudget });
  await bringForward(db.pool);
}

const enqueueRow = async (row: string) =>
  (await enqueue(ports, newJob({ type: "index", payload: { row }, maxAttempts: 3 }))).id;

test("a type that works counts no failures and opens no breaker", async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => enqueueRow(`row ${n}`)));
  await drainOnce();
  await drainOnce();
  expect(await db.run(books())).toMatchObject([{ enqueued: 40, completed: 40, failed: 0, dead: 0 }]);
  for (const id of ids) {
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", attempts: 1, errors: [] });
  }
  expect(seen.runs).toBe(40);
  expect(ports.events).toEqual([]);
  expect((await db.pool.query("select from sluice.breaker")).rowCount).toBe(0);
});

test("a job whose effect never appears is dead after its last run, and its errors say so", async () => {
  const id = await enqueueRow("never");
  for (let round = 0; (await lookAt(db, id)).status === "pending"; round++) {
    expect(round).toBeLessThan(10);
    await drainOnce();
  }
  expect(seen.runs).toBe(3);
  const message = "its effect was not there 60 s after the run";
  expect(await lookAt(db, id)).toMatchObject({
    status: "dead",
    deadReason: "exhausted",
    attempts: 3,
    errors: [1, 2, 3].map((attempt) => ({ attempt, message })),
  });
  expect(await db.run(books())).toMatchObject([{ failed: 3, dead: 1 }]);
});

test("a job whose effect is already there completes without a run", async () => {
  seen.rows.add("early");
  const id = await enqueueRow("early");
  await drainOnce();
  expect(await lookAt(db, id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(seen.runs).toBe(0);
});

test("a job whose check fails after the last run is dead, with no attempt beyond its maximum", async () => {
  const id = await enqueueRow("never");
  for (let round = 0; round < 5; round++) await drainOnce(); // three runs, and a check after each but the last
  seen.isBlind = true;
  await drainOnce();
  expect(await lookAt(db, id)).toMatchObject({ status: "dead", attempts: 3 });
  expect((await lookAt(db, id)).errors.at(-1)).toMatchObject({ attempt: 3, message: "no index" });
});
