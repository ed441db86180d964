// claim: which jobs it may choose, and how many it has to find.
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
    const known = claimable.find(({ id }) => id === job.id);
    ok(known, "a job was claimed that is not to be claimed");
    ok(known.expiresAt > model.now, "an expired job was claimed");
    deepStrictEqual([job.attempt, job.abandonments], [known.attempts + 1, known.abandonments]);
    return { known, leaseKey: job.leaseKey };
  });
  const refused = await refusedIn(claimable, model, db);
  checkChoice({ claimed: claimed.map(({ known }) => known), refused }, claimable, wanted.limit);
  for (const { known, leaseKey } of claimed) model.lease(known, { leaseKey, ticks: wanted.leaseTicks });
  for (const job of refused) model.bury(job, "expired");
  return claimed.length + refused.length;
}

/** A claim that meets an expired job buries it: which ones it met, only the table tells. */
async function refusedIn(claimable: ModelJob[], model: QueueModel, db: TestDatabase): Promise<ModelJob[]> {
  const expired = claimable.filter((job) => job.expiresAt <= model.now);
  if (expired.length === 0) return [];
  const { rows } = await db.pool.query("select id from sluice.closed where id = any($1)", [
    expired.map(({ id }) => id),
  ]);
  return expired.filter(({ id }) => rows.some((row) => row.id === id));
}

/**
 * As many as wanted if there are as many, best priority first; isolated jobs come in a group of one type, or alone. Where all
 * that were met had expired, the claim goes on to the next, so that these come on top.
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
    ok(claimed.every(isIsolated), "an isolated job in company");
    deepStrictEqual(new Set(claimed.map(({ type }) => type)).size, 1, "isolated jobs of two types");
    if (claimed.some((job) => job.abandonments > 2))
      deepStrictEqual(claimed.length, 1, "not alone the third time");
  } else if (claimed.length === 0)
    ok(
      certain.every((job) => refused.includes(job)),
      "a good job was passed over",
    );
  else if (certain.some(isIsolated)) ok(taken.length > 0, "nothing found");
  else ok(taken.length >= Math.min(wanted, certain.length), "less than there is");
  if (claimable.some(isIsolated)) return;
  const left = certain.filter((job) => !taken.includes(job));
  const lowest = Math.min(...taken.map(({ type }) => priorities[type] ?? 0));
  ok(
    left.every(({ type }) => (priorities[type] ?? 0) <= lowest),
    "a better priority was left",
  );
}
