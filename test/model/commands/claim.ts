// The claim command: it checks which jobs a claim may take, and how many it must find.
import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { claim } from "../../../src/core/sql/index.ts";
import type { TestDatabase } from "../../support/test-database.ts";
import { isFair, isOrdered, type ModelPolicy } from "../key-rules.ts";
import { isIsolated, type ModelJob, priorities, type QueueModel, tickSeconds } from "../queue-model.ts";
import { command, queue, types } from "./command.ts";

export interface Wanted {
  types: string[];
  limit: number;
  leaseTicks: number;
  run: number;
  policy: ModelPolicy;
}

export const claims = fc
  .record({
    types: fc.subarray(types, { minLength: 1 }),
    limit: fc.integer({ min: 1, max: 5 }),
    leaseTicks: fc.integer({ min: 1, max: 3 }),
    run: fc.constantFrom(1, 2, 3),
    policy: fc.record({
      onDead: fc.constantFrom("block", "block", "pass"),
      concurrency: fc.constantFrom(null, 1, 2),
    }),
  })
  .map((wanted) =>
    command(`claim ${JSON.stringify(wanted)}`, (model, { db }) => claimSome(model, db, wanted)),
  );

/** Answers whether another claim may find something. */
export async function claimSome(model: QueueModel, db: TestDatabase, wanted: Wanted): Promise<boolean> {
  model.keyed.promote();
  model.keyed.apply(wanted.policy);
  const claimable = model.claimable(wanted.types);
  const certain = claimable.filter((job) => !job.isLate && isCertain(model, job, claimable));
  const { leaseTicks, ...options } = wanted;
  const batch = await db.run(claim({ queue, leaseSeconds: leaseTicks * tickSeconds, ...options }));
  const refused = await findRefused(claimable, model, db);
  for (const job of refused) {
    ok(
      wanted.policy.onDead === "pass" || !isOrdered(job) || model.keyed.isNext(job),
      "it died before its turn",
    );
    model.bury(job, "expired");
  }
  const claimed = batch.jobs.map((job) => {
    const modelJob = claimable.find(({ id }) => id === job.id);
    ok(modelJob, "a job was claimed that must not be");
    ok(modelJob.expiresAt > model.now, "an expired job was claimed");
    ok(model.keyed.isNext(modelJob, job.leaseKey), "a job was claimed out of its turn");
    deepStrictEqual([job.attempt, job.abandonments], [modelJob.attempts + 1, modelJob.abandonments]);
    model.lease(modelJob, { leaseKey: job.leaseKey, ticks: leaseTicks });
    return modelJob;
  });
  for (const run of Map.groupBy(claimed.filter(isOrdered), (job) => job.key).values())
    ok(run.length <= wanted.run, "a longer run than wanted");
  // A claim that says that there is more may leave jobs with keys to the next one, and also jobs of a lower priority than
  // isolated ones that it may not take.
  const isolated = model.all((job) => isIsolated(job) && job.status === "pending");
  const mustFindAll =
    !batch.hasMore ||
    (claimable.every((job) => job.key === null) && !isolated.some(({ type }) => wanted.types.includes(type)));
  checkChoice({ claimed, refused }, { claimable, certain: mustFindAll ? certain : [] }, wanted.limit);
  return batch.hasMore || claimed.length + refused.length > 0;
}

/**
 * A job that the claim must find if it has room: all of its key that are next can be claimed too. For fair keys the number
 * of free shares is in the number of these jobs.
 */
function isCertain({ keyed }: QueueModel, job: ModelJob, claimable: readonly ModelJob[]): boolean {
  if (job.key === null) return true;
  const waiting = keyed.ofKey(job.key).filter((other) => other.status === "pending" && other.place !== null);
  if (isOrdered(job)) return keyed.isCertainlyNext(job);
  const free = (keyed.policy.concurrency ?? Infinity) - keyed.runningOf(job.key);
  return waiting.every((other) => claimable.includes(other)) && waiting.indexOf(job) < free;
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
  { claimable, certain }: { claimable: ModelJob[]; certain: ModelJob[] },
  wanted: number,
): void {
  const taken = [...claimed, ...refused];
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
  const left = certain.filter((job) => !taken.includes(job) && !isFair(job)); // of a fair key the oldest may come first
  const lowest = Math.min(...taken.map(({ type }) => priorities[type] ?? 0));
  ok(
    left.every(({ type }) => (priorities[type] ?? 0) <= lowest),
    "a higher priority was left",
  );
}
