// Commands of workers, with live leases and with lost ones: settle, extend.
import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import type { LeaseRef, Outcome } from "../../../src/core/job.ts";
import { extend, settle } from "../../../src/core/sql/index.ts";
import { isOrdered } from "../key-rules.ts";
import { type ModelJob, type QueueModel, tickSeconds } from "../queue-model.ts";
import { anyPick, command } from "./command.ts";

const none = { key: null };
const anyOutcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.constant<Outcome>({ kind: "complete", output: null }),
  fc
    .constantFrom(0, 1, 2)
    .map((ticks): Outcome => ({ kind: "retry", message: "no", retryInSeconds: ticks * tickSeconds })),
  fc.constant<Outcome>({ kind: "bury", message: "never" }),
  fc.constantFrom(1, 2).map((ticks): Outcome => ({ kind: "snooze", retryInSeconds: ticks * tickSeconds })),
  fc.constant<Outcome>({ kind: "release" }),
);

export const settles = fc
  .array(fc.record({ pick: anyPick, outcome: anyOutcome, isFresh: fc.boolean() }), {
    minLength: 1,
    maxLength: 4,
  })
  .map((picks) =>
    command(
      `settle ${JSON.stringify(picks)}`,
      async (model, { db }) => {
        const settlements = picks.flatMap(({ pick, outcome, isFresh }, index) => {
          const job = pickClaim(model, { pick, isFresh });
          const isFirst =
            picks.findIndex((other) => isSameRun(model, pickClaim(model, other), job)) === index;
          return job && isFirst && isInOrder(model, job, outcome) ? [{ job, outcome }] : [];
        });
        if (settlements.length === 0) return;
        const answers = await db.run(settle(settlements));
        for (const [index, { job, outcome }] of settlements.entries()) {
          const modelJob = model.jobs.get(job.id);
          const applied = model.holds(job);
          if (modelJob && applied) model.settle(modelJob, outcome);
          const status = applied ? modelJob?.status : null;
          deepStrictEqual(answers[index], { id: job.id, status, applied });
        }
      },
      (model) => model.claims.length > 0,
    ),
  );

export const extensions = fc
  .record({
    picks: fc.array(fc.record({ pick: anyPick, isFresh: fc.boolean() }), { minLength: 1, maxLength: 3 }),
    isWhole: fc.boolean(),
    ticks: fc.integer({ min: 1, max: 4 }),
  })
  .map(({ picks, isWhole, ticks }) =>
    command(
      `extend ${JSON.stringify({ picks, isWhole, ticks })}`,
      async (model, { db }) => {
        const picked = new Set(picks.flatMap((pick) => pickClaim(model, pick) ?? []));
        const keys = [...picked].map((job) => job.leaseKey);
        const jobs = isWhole ? model.claims.filter((job) => keys.includes(job.leaseKey)) : [...picked];
        const extended = await db.run(extend(jobs, { seconds: ticks * tickSeconds }));
        const live = new Set(
          jobs.filter((job) => model.holds(job)).map(({ id }) => model.jobs.get(id) as ModelJob),
        );
        const wholeRuns = new Set([...live].flatMap((job) => [job, ...model.keyed.restOfRun(job)]));
        const answered = new Set(extended.map(({ id }) => model.jobs.get(id) as ModelJob));
        ok(
          [...live].every((job) => answered.has(job)),
          "a job was not extended",
        );
        ok(
          [...answered].every((job) => wholeRuns.has(job)),
          "another job was extended",
        );
        for (const job of wholeRuns) job.deadline = Math.max(job.deadline, model.now + ticks);
      },
      (model) => model.claims.length > 0,
    ),
  );

function isSameRun(model: QueueModel, a: LeaseRef | undefined, b: LeaseRef | undefined): boolean {
  const [first, second] = [model.jobs.get(a?.id ?? ""), model.jobs.get(b?.id ?? "")];
  return (
    a?.leaseKey === b?.leaseKey &&
    (first === second || (first?.key === second?.key && isOrdered(first ?? none)))
  );
}

/** A worker may complete the jobs of a run in any order, but the one that fails is the first that it has not completed. */
function isInOrder(model: QueueModel, claimed: LeaseRef, outcome: Outcome): boolean {
  const job = model.jobs.get(claimed.id);
  return outcome.kind === "complete" || !job || !model.holds(claimed) || model.keyed.isFirstOfRun(job);
}

/** Picks one of the claims with a live lease, or one of all claims ever made. */
function pickClaim(model: QueueModel, { pick, isFresh }: { pick: number; isFresh: boolean }) {
  const live = isFresh ? model.claims.filter((job) => model.holds(job)) : [];
  const from = live.length > 0 ? live : model.claims;
  return from[pick % from.length];
}
