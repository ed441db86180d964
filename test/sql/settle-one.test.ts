// Settling one job: a puller sends one outcome, and the answer shows that job.
import { beforeEach, expect, test } from "vitest";
import type { Outcome } from "../../src/core/job.ts";
import { settleOne } from "../../src/core/sql/index.ts";
import { noLease } from "../support/jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const detail = { stack: "Error: jam\n  at print", causes: [] };
const outcomes: [Outcome, object][] = [
  [complete, { status: "completed", output: null }],
  [
    { kind: "complete", output: { sheets: 2 } },
    { status: "completed", output: { sheets: 2 } },
  ],
  [
    { kind: "retry", message: "jam", retryInSeconds: 60, detail },
    { status: "pending", errors: [{ message: "jam", stack: detail.stack }] },
  ],
  [
    { kind: "bury", message: "no paper" },
    { status: "dead", deadReason: "fatal" },
  ],
  [{ kind: "release" }, { status: "pending", attempts: 0 }],
];

test.each(outcomes)(
  "%o is applied, and the answer is the job as find shows it",
  async (outcome, expected) => {
    await queue.enqueueOne();
    const job = await queue.claimOne();
    const changed = await db.run(settleOne({ job, outcome }));
    expect(changed).toMatchObject({ applied: true, job: expected, leaseExpiresAt: null });
    expect(changed?.job).toEqual(await queue.find(job.id));
  },
);

test("settling under a lost lease changes nothing, and the answer shows the job's actual state", async () => {
  await queue.enqueueOne();
  const job = await queue.claimOne();
  const lost = { id: job.id, leaseKey: noLease };
  expect(await db.run(settleOne({ job: lost, outcome: complete }))).toMatchObject({
    applied: false,
    job: { status: "processing" },
    leaseExpiresAt: job.leaseExpiresAt,
  });
  await queue.settle([job], complete);
  expect(await db.run(settleOne({ job, outcome: { kind: "release" } }))).toMatchObject({
    applied: false,
    job: { status: "completed" },
  });
});

test("the answer for a job that does not exist is null", async () => {
  const job = { id: "01900000-0000-7000-8000-000000000000", leaseKey: noLease };
  expect(await db.run(settleOne({ job, outcome: complete }))).toBe(null);
});
