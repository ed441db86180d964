// Random commands run on Postgres and on a model, and both must agree. fast-check shrinks a failure and prints its seed.
import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { advanceCursors, resume, settle } from "../../src/core/sql/index.ts";
import { createQuickEmpty } from "../support/quick-empty.ts";
import { type TestDatabase, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";
import { claimSome, claims } from "./commands/claim.ts";
import { type Real, types } from "./commands/command.ts";
import { debounces, throttles } from "./commands/debounce.ts";
import { closes, enqueues, keyedBatches, opens } from "./commands/produce.ts";
import { advances, folds, passTime, reapsExpired, reapsLeases, timePasses } from "./commands/reap.ts";
import { extensions, settles } from "./commands/settle.ts";
import { cancels, pauses, revisions } from "./commands/tend.ts";
import { type ModelJob, QueueModel } from "./queue-model.ts";

/** They run concurrently, each on its own database, as a run often waits for a lane that is not committed yet. */
const streams = 4;
/** A command that is listed twice is drawn twice as often. */
const anyCommand = [
  ...[enqueues, enqueues, keyedBatches, opens, opens, closes, debounces, debounces, throttles],
  ...[claims, claims, claims, settles, settles, extensions],
  ...[timePasses, timePasses, reapsLeases, reapsExpired, advances, advances, folds],
  ...[cancels, revisions, pauses],
];

export interface ModelRuns {
  /** Of all streams. */
  runs: number;
  timeoutMs: number;
}

export function describeModel({ runs, timeoutMs }: ModelRuns): void {
  describe.concurrent.each(Array.from({ length: streams }, (_, n) => n))(
    "stream %i of random commands",
    (stream) => {
      const real: Real = { db: useTestDatabase(), sessions: [] };
      test("after every command, each job and the books are as the model says", { timeout: timeoutMs }, () =>
        runModel(real, { stream, runs: Math.ceil(runs / streams) }),
      );
    },
  );
}

async function runModel(real: Real, { stream, runs }: { stream: number; runs: number }): Promise<void> {
  const property = fc
    .asyncProperty(fc.commands(anyCommand, { maxCommands: 60, size: "max" }), async (commands) => {
      const model = new QueueModel();
      await fc.asyncModelRun(() => ({ model, real }), commands);
      await claimTheRest(model, real);
    })
    .beforeEach(createQuickEmpty(real.db.pool))
    .afterEach(() => endSessions(real));
  const seed = fc.readConfigureGlobal().seed ?? Date.now();
  await fc.assert(property, { numRuns: runs, seed: seed + stream });
}

/** Removes everything that holds jobs back. Then claims must find all pending jobs. */
async function claimTheRest(model: QueueModel, real: Real): Promise<void> {
  const { db } = real;
  await endSessions(real);
  await passTime(model, db, 10);
  for (const target of [{ queue: "default" }, ...types.map((type) => ({ type }))])
    await db.run(resume("ann", target));
  model.paused.clear();
  await db.run(advanceCursors());
  for (const job of model.jobs.values()) job.isLate = false;
  const policy = { onDead: "pass", concurrency: null } as const;
  do await completeHeld(model, db);
  while (await claimSome(model, db, { types, limit: 100, leaseTicks: 1, run: 3, policy }));
  deepStrictEqual(
    model.all((job) => job.status === "pending"),
    [],
  );
  await completeHeld(model, db);
  deepStrictEqual(await wrongKeys(db.pool), []);
}

async function completeHeld(model: QueueModel, db: TestDatabase): Promise<void> {
  const held = model.claims.filter((job) => model.holds(job));
  if (held.length === 0) return;
  await db.run(settle(held.map((job) => ({ job, outcome: { kind: "complete", output: null } }))));
  for (const { id } of held) model.settle(model.jobs.get(id) as ModelJob, { kind: "complete", output: null });
}

async function endSessions({ sessions }: Real): Promise<void> {
  for (const client of sessions.splice(0)) {
    await client.query("rollback");
    client.release();
  }
}
