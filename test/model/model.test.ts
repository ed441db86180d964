// Random commands against Postgres and a Map of what should be. fast-check prints the seed of a failure and shrinks it.
import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { advanceCursors, resume } from "../../src/core/sql/index.ts";
import { createQuickEmpty } from "../support/quick-empty.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { claimSome, claims } from "./commands/claim.ts";
import { type Real, types } from "./commands/command.ts";
import { closes, enqueues, keyedBatches, opens } from "./commands/produce.ts";
import { advances, folds, passTime, reapsExpired, reapsLeases, timePasses } from "./commands/reap.ts";
import { extensions, settles } from "./commands/settle.ts";
import { cancels, pauses, revisions } from "./commands/tend.ts";
import { QueueModel } from "./queue-model.ts";

const db = useTestDatabase();
// The database may be dropped before the last connection of the pool has closed.
db.pool.on("error", () => {});
const emptyQuickly = createQuickEmpty(db.pool);
const real: Real = { db, sessions: [] };
const runs = Number(process.env.SLUICE_MODEL_RUNS ?? 500);
/** Those that are there twice are drawn twice as often. */
const anyCommand = [
  ...[enqueues, enqueues, keyedBatches, opens, opens, closes],
  ...[claims, claims, claims, settles, settles, extensions],
  ...[timePasses, timePasses, reapsLeases, reapsExpired, advances, advances, folds],
  ...[cancels, revisions, pauses],
];

test("whatever is done to a queue, each job is where the model says, and so are the books", {
  timeout: 240_000,
}, async () => {
  const property = fc
    .asyncProperty(fc.commands(anyCommand, { maxCommands: 60, size: "max" }), async (commands) => {
      const model = new QueueModel();
      await fc.asyncModelRun(() => ({ model, real }), commands);
      await claimTheRest(model);
    })
    .beforeEach(emptyQuickly)
    .afterEach(endSessions);
  await fc.assert(property, { numRuns: runs });
});

/** When nothing holds them back any more, all pending jobs are found. */
async function claimTheRest(model: QueueModel): Promise<void> {
  await endSessions();
  await passTime(model, db, 10);
  for (const target of [{ queue: "default" }, ...types.map((type) => ({ type }))])
    await db.run(resume(target));
  model.paused.clear();
  await db.run(advanceCursors());
  for (const job of model.jobs.values()) job.isLate = false;
  while ((await claimSome(model, db, { types, limit: 100, leaseTicks: 1 })) > 0);
  deepStrictEqual(
    model.all((job) => job.status === "pending"),
    [],
  );
}

async function endSessions(): Promise<void> {
  for (const client of real.sessions.splice(0)) {
    await client.query("rollback");
    client.release();
  }
}
