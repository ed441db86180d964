// Commands of time and the reaper: time passes, leases and expired jobs are reaped, cursors advance, entries are folded.
import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { advanceCursors, foldLedger, reapExpired, reapLeases } from "../../../src/core/sql/index.ts";
import type { TestDatabase } from "../../support/test-database.ts";
import { isOrdered } from "../key-rules.ts";
import { type ModelJob, type QueueModel, tickSeconds } from "../queue-model.ts";
import { command } from "./command.ts";

const limit = 1000;

export const timePasses = fc
  .integer({ min: 1, max: 4 })
  .map((ticks) => command(`${ticks} ticks pass`, (model, { db }) => passTime(model, db, ticks)));

/** Moves all times into the past. The cursor of `scheduled` does not expect that, so the cursors start again. */
export async function passTime(model: QueueModel, db: TestDatabase, ticks: number): Promise<void> {
  const passed = `interval '${ticks * tickSeconds} seconds'`;
  await db.pool.query(`
    update sluice.scheduled set run_at = run_at - ${passed};
    -- the view only shows leases of the last hour, as the reaper is never later than that
    update sluice.lease set deadline = greatest(deadline - ${passed}, now() - interval '59 minutes');
    update sluice.expiry set expires_at = expires_at - ${passed};
    update sluice.job set expires_at = expires_at - ${passed} where expires_at is not null;
    update sluice.job set scheduled_at = scheduled_at - ${passed} where scheduled_at is not null;
    update sluice.debounce_state set since = since - ${passed}, until = until - ${passed};
    delete from sluice.cursors`);
  model.now += ticks;
}

export const reapsLeases = fc.constant(
  command("reap leases", async (model, { db }) => {
    const dead = model.all((job) => job.reason === "abandoned").length;
    const expected = model.all((job) => job.status === "processing" && job.deadline <= model.now).length;
    model.reapLeases();
    const buried = model.all((job) => job.reason === "abandoned").length - dead;
    deepStrictEqual(await db.run(reapLeases({ limit })), { returned: expected - buried, buried });
  }),
);

export const reapsExpired = fc.constant(
  command("reap expired", async (model, { db }) => {
    const pending = model.all((job) => job.status === "pending").length;
    const count = await db.run(reapExpired({ limit }));
    const { rows } = await db.pool.query("select id from sluice.closed");
    const closed = new Set(rows.map((row) => row.id));
    const mayBeLeft = (job: ModelJob) => blocks(model) && isOrdered(job) && !job.hasTurn;
    model.reapExpired((job) => mayBeLeft(job) && !closed.has(job.id));
    const buried = pending - model.all((job) => job.status === "pending").length;
    deepStrictEqual(count, buried);
  }),
);

const blocks = (model: QueueModel) => model.keyed.policy.onDead === "block";

export const advances = fc.constant(
  command("advance cursors", async (model, { db }) => {
    await db.run(advanceCursors());
    for (const job of model.jobs.values()) job.isLate = false;
  }),
);

export const folds = fc.constant(command("fold ledger", (_, { db }) => db.run(foldLedger({ limit }))));
