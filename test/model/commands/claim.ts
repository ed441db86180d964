// The claim command: it checks which jobs a claim may take, and how many it must find.
import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { claim } from "../../../src/core/sql/index.ts";
import type { TestDatabase } from "../../support/test-database.ts";
import { isIsolated, type ModelJob, priorities, type QueueModel, tickSeconds } from "../queue-model.ts";
import { command, queue, types } from "./command.ts";

export const claims = fc
  .record({
    types: fc.subarray(types, { minLength: 1 }),
    limit: fc.integer({ min: 1, max: 5 }),
    leaseTicks: fc.integer({ min: 1, max: 3 }),
  })
  .map((wanted) =>
    command(`claim ${JSON.stringify(wanted)}`, (model, { db }) => claimSome(model, db, wanted)),
  );

export async function claimSome(
  model: QueueModel,
  db: TestDatabase,
  wanted: { types: string[]; limit: number; leaseTicks: number },
): Promise<number> {
  const claimable = model.claimable(wanted.types);
  const leaseSeconds = wanted.leaseTicks * tickSeconds;
  const batch = await db.run(claim({ queue, types: wanted.types, limit: wanted.limit, leaseSeconds }));
  const claimed = batch.jobs.map((job) => {
    const modelJob = claimable.find(({ id }) => id === job.id);
    ok(modelJob, "a job was claimed that must not be");
    ok(modelJob.expiresAt > model.now, "an expired job was claimed");
    deepStrictEqual([job.attempt, job.abandonments], [modelJob.attempts + 1, modelJob.abandonments]);
    return { modelJob, leaseKey: job.leaseKey };
  });
  const refused = await findRefused(claimable, model, db);
  checkChoice({ claimed: claimed.map(({ modelJob }) => modelJob), refused }, claimable, wanted.limit);
  for (const { modelJob, leaseKey } of claimed) model.lease(modelJob, { leaseKey, ticks: wanted.leaseTicks });
  for (const job of refused) model.bury(job, "expired");
  return claimed.length + refused.length;
}

/** A claim buries the expired jobs that it finds. Only the table shows which ones it found. */
async function findRefused(claimable: ModelJob[], model: QueueModel, db: TestDatabase): Promise<ModelJob[]> {
  const expired = claimable.filter((job) => job.expiresAt <= model.now);
  if (expired.length === 0) return [];
  const { rows } = await db.pool.query("select id from sluice.closed where id = any($1)", [
    expired.map(({ id }) => id),
  ]);
  return expired.filter(({ id }) => rows.some((row) => row.id === id));
}

/**
 * A claim takes as many jobs as wanted if there are enough, highest priority first. Isolated jobs come in a group of one
 * type, or alone. If all jobs that it finds have expired, the claim continues, so expired jobs come on top of the limit.
 */
function checkChoice(
  { claimed, refused }: { claimed: ModelJob[]; refused: ModelJob[] },
  claimable: ModelJob[],
  wanted: number,
): void {
  const taken = [...claimed, ...refused];
  const certain = claimable.filter((job) => !job.isLate);
  ok(claimed.length <= wanted, "more than wanted");
  if (claimed.some(isIsolated)) {
    ok(claimed.every(isIsolated), "an isolated job together with others");
    deepStrictEqual(new Set(claimed.map(({ type }) => type)).size, 1, "isolated jobs of two types");
    if (claimed.some((job) => job.abandonments > 2))
      deepStrictEqual(claimed.length, 1, "not alone after the third abandonment");
  } else if (claimed.length === 0)
    ok(
      certain.every((job) => refused.includes(job)),
      "a claimable job was missed",
    );
  else if (certain.some(isIsolated)) ok(taken.length > 0, "nothing found");
  else ok(taken.length >= Math.min(wanted, certain.length), "fewer than there are");
  if (claimable.some(isIsolated)) return;
  const left = certain.filter((job) => !taken.includes(job));
  const lowest = Math.min(...taken.map(({ type }) => priorities[type] ?? 0));
  ok(
    left.every(({ type }) => (priorities[type] ?? 0) <= lowest),
    "a higher priority was left",
  );
}
