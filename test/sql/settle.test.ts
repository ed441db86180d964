// settle: one call applies a whole batch of mixed outcomes, each fenced by its lease key.
import { beforeEach, describe, expect, test } from "vitest";
import type { LeaseRef, Outcome, Settlement } from "../../src/core/job.ts";
import { books, claim, reapLeases, settle } from "../../src/core/sql/index.ts";
import { noLease } from "../support/jobs.ts";
import { inSession, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const retry: Outcome = { kind: "retry", message: "busy", retryInSeconds: 60 };
const release: Outcome = { kind: "release" };

async function claimNew(count: number, fields = {}) {
  await queue.enqueue(...times(count, () => fields));
  return queue.claim({ limit: count });
}

async function settledAs(outcome: Outcome, fields = {}) {
  const job = only(await claimNew(1, fields));
  const [answer] = await queue.settle([job], outcome);
  return { answer, job: await queue.find(job.id) };
}

describe("each outcome", () => {
  test("complete: the job is completed, with its output", async () => {
    const { answer, job } = await settledAs({ kind: "complete", output: { rows: [1, null] } });
    expect(answer).toMatchObject({ status: "completed", applied: true });
    expect(job).toMatchObject({ status: "completed", attempts: 1, output: { rows: [1, null] }, errors: [] });
    expect(Math.abs(secondsFromNow(job.completedAt ?? new Date(0)))).toBeLessThan(60);
    expect(job.startedAt).not.toBeNull();
  });

  test.each([[null], [0], [false], [""], [[]], [[null]], [{}], ["text"]])(
    "complete: an output of %j is kept",
    async (output) => {
      expect((await settledAs({ kind: "complete", output })).job.output).toEqual(output);
    },
  );

  test("retry: the job is pending again after the given time, and its error is kept", async () => {
    const { answer, job } = await settledAs(retry);
    expect(answer).toMatchObject({ status: "pending", applied: true });
    expect(job).toMatchObject({
      ...{ status: "pending", attempts: 1, deadReason: null },
      errors: [{ attempt: 1, message: "busy" }],
    });
    expect(secondsFromNow(job.scheduledAt)).toBeCloseTo(60, -1);
    expect(await queue.claim()).toEqual([]);
  });

  test("retry, bury: the error names the worker that ran the attempt", async () => {
    const id = await queue.enqueueOne();
    await queue.settle([await queue.claimOne({ worker: "w-1" })], {
      kind: "retry",
      message: "busy",
      retryInSeconds: 0,
    });
    await queue.settle([await queue.claimOne({ worker: "w-2" })], release);
    await queue.settle([await queue.claimOne()], { kind: "retry", message: "busy", retryInSeconds: 0 });
    await queue.settle([await queue.claimOne({ worker: "w-3" })], { kind: "bury", message: "no use" });
    const { errors } = await queue.find(id);
    expect(errors.map(({ attempt, worker }) => [attempt, worker])).toEqual([
      [1, "w-1"],
      [2, null],
      [3, "w-3"],
    ]);
  });

  test("a running and a completed job name their worker, whichever way they are settled", async () => {
    const [one, ...others] = await queue.enqueue({}, {}, {});
    const output: Outcome = { kind: "complete", output: { rows: 1 } };
    const first = await queue.claimOne({ worker: "w-1" });
    expect(await queue.find(first.id)).toMatchObject({ status: "processing", worker: "w-1" });
    await queue.settle([first], complete); // the whole lease
    const [second, third] = await queue.claim({ worker: "w-2" });
    await queue.settle([second as LeaseRef], complete); // a part of it
    await queue.settle([third as LeaseRef], output); // job by job
    const workers = [one, ...others].map(async (job) => (await queue.find(job?.id ?? "")).worker);
    expect(await Promise.all(workers)).toEqual(["w-1", "w-2", "w-2"]);
  });

  test("a settle of two workers' leases keeps both names", async () => {
    await queue.enqueue({}, {});
    const jobs = [await queue.claimOne({ worker: "w-1" }), await queue.claimOne({ worker: "w-2" })];
    await queue.settle(jobs, complete);
    const workers = jobs.map(async ({ id }) => (await queue.find(id)).worker);
    expect(await Promise.all(workers)).toEqual(["w-1", "w-2"]);
  });

  test("retry: the job is dead when its attempts are used up", async () => {
    const { answer, job } = await settledAs(retry, { maxAttempts: 1 });
    expect(answer).toMatchObject({ status: "dead", applied: true });
    expect(job).toMatchObject({
      ...{ status: "dead", deadReason: "exhausted", attempts: 1 },
      errors: [{ attempt: 1, message: "busy" }],
    });
  });

  test("bury: the job is dead at once, whatever attempts it has left", async () => {
    const { answer, job } = await settledAs({ kind: "bury", message: "no use" });
    expect(answer).toMatchObject({ status: "dead", applied: true });
    expect(job).toMatchObject({ status: "dead", deadReason: "fatal", errors: [{ message: "no use" }] });
  });

  test("snooze: the job is pending again later, and the attempt is not counted", async () => {
    const { job } = await settledAs({ kind: "snooze", retryInSeconds: 60 }, { maxAttempts: 1 });
    expect(job).toMatchObject({ status: "pending", attempts: 0, errors: [] });
    expect(secondsFromNow(job.scheduledAt)).toBeCloseTo(60, -1);
  });

  test("release: the job is pending at once, and the attempt is not counted", async () => {
    const { job } = await settledAs(release, { maxAttempts: 1 });
    expect(job).toMatchObject({ status: "pending", attempts: 0, errors: [] });
    expect(await queue.claim()).toMatchObject([{ id: job.id, attempt: 1 }]);
  });

  test("an error message is kept up to its 4000th character", async () => {
    const { job } = await settledAs({ kind: "bury", message: "é".repeat(5000) });
    expect(job.errors[0]?.message).toBe("é".repeat(4000));
  });

  test("a job with five attempts is dead after five failures", async () => {
    const id = await queue.enqueueOne({ maxAttempts: 5 });
    for (let attempt = 1; attempt <= 5; attempt++)
      await queue.settle([await queue.claimOne()], { ...retry, retryInSeconds: 0 });
    const job = await queue.find(id);
    expect(job).toMatchObject({ status: "dead", deadReason: "exhausted", attempts: 5 });
    expect(job.errors.map((error) => error.attempt)).toEqual([1, 2, 3, 4, 5]);
  });
});

test("1,000 mixed outcomes are settled in one call and answered in the order of the request", async () => {
  const outcomes: Outcome[] = [
    complete,
    { kind: "complete", output: { n: 1 } },
    retry,
    { kind: "bury", message: "no" },
    { kind: "snooze", retryInSeconds: 60 },
    release,
  ];
  const jobs = (await claimNew(1000)).toReversed();
  const settlements = jobs.map((job, n) => ({ job, outcome: outcomes[n % 6] ?? complete }));
  const answers = await db.run(settle(settlements));
  expect(answers.map((answer) => answer.id)).toEqual(jobs.map((job) => job.id));
  const expected = ["completed", "completed", "pending", "dead", "pending", "pending"];
  expect(answers.map((answer) => answer.status)).toEqual(times(1000, (n) => expected[n % 6]));
  expect(answers.every((answer) => answer.applied)).toBe(true);
  expect(await db.run(books())).toMatchObject([
    { enqueued: 1000, completed: 334, dead: 167, pending: 499, leased: 0, failed: 334 },
  ]);
  expect([await queue.count("lease"), await queue.count("output")]).toEqual([0, 167]);
});

test("the unsettled jobs of a partly settled batch stay in their lease", async () => {
  const jobs = await claimNew(10);
  await queue.settle(jobs.slice(0, 4), complete);
  await queue.settle(jobs.slice(8), release);
  expect(await queue.settle(jobs.slice(4, 8), complete)).toMatchObject(times(4, () => ({ applied: true })));
  expect(await db.run(books())).toMatchObject([{ completed: 8, pending: 2, leased: 0 }]);
});

describe("a settlement is not applied, and the answer says so,", () => {
  const refused = { status: null, applied: false };

  test("for a lease key of another claim", async () => {
    const job = only(await claimNew(1));
    const later = { ...job, leaseKey: noLease };
    expect(await queue.settle([later], complete)).toMatchObject([refused]);
    expect(await queue.find(job.id)).toMatchObject({ status: "processing" });
  });

  test("for a job that was claimed again since", async () => {
    const old = only(await claimNew(1));
    await queue.settle([old], release);
    const current = await queue.claimOne();
    const settlements = [old, current, old].map((job) => ({ job, outcome: complete }));
    expect((await db.run(settle(settlements))).map((answer) => answer.applied)).toEqual([false, true, false]);
  });

  test("for a job that is not in the lease", async () => {
    const [first] = await claimNew(1);
    const [second] = await claimNew(1);
    const crossed = { id: second?.id ?? "", leaseKey: first?.leaseKey ?? "" };
    expect(await queue.settle([crossed], complete)).toMatchObject([refused]);
    expect(await db.run(books())).toMatchObject([{ leased: 2, completed: 0 }]);
  });

  test("for a job that does not exist", async () => {
    const ghost: LeaseRef = { id: "01900000-0000-7000-8000-000000000000", leaseKey: noLease };
    expect(await queue.settle([ghost], complete)).toMatchObject([refused]);
  });

  test("when it was applied before", async () => {
    const jobs = await claimNew(3);
    await queue.settle(jobs, complete);
    expect(await queue.settle(jobs, retry)).toMatchObject([refused, refused, refused]);
    expect(await db.run(books())).toMatchObject([{ completed: 3, pending: 0 }]);
  });

  test("for the second of two settlements of one job in one call", async () => {
    const [job, other] = await claimNew(2);
    if (!job || !other) throw new Error("two jobs were enqueued");
    const settlements: Settlement[] = [
      { job, outcome: { kind: "complete", output: "first" } },
      { job: other, outcome: complete },
      { job, outcome: { kind: "bury", message: "second" } },
    ];
    expect(await db.run(settle(settlements))).toMatchObject([
      { status: "completed", applied: true },
      { status: "completed", applied: true },
      refused,
    ]);
    expect(await queue.find(job.id)).toMatchObject({ status: "completed", output: "first" });
    expect(await db.run(books())).toMatchObject([{ completed: 2, dead: 0, leased: 0 }]);
  });

  test("after the reaper took the lease away", async () => {
    await queue.enqueueOne();
    const job = await queue.claimOne({ leaseSeconds: -1 });
    await db.run(reapLeases({ limit: 10 }));
    expect(await queue.settle([job], complete)).toMatchObject([refused]);
    expect(await queue.find(job.id)).toMatchObject({ status: "pending", attempts: 1 });
  });
});

describe("concurrent settles", () => {
  test("with stale leases change nothing", async () => {
    const stale = await claimNew(50);
    await queue.settle(stale, release);
    const current = await queue.claim();
    const answers = await Promise.all(times(16, () => queue.settle(stale, complete)));
    expect(answers.flat().filter((answer) => answer.applied)).toEqual([]);
    expect(await queue.settle(current, complete)).toMatchObject(current.map(() => ({ applied: true })));
  });

  test("of the same lease settle each job once", async () => {
    for (let round = 0; round < 10; round++) {
      const jobs = await claimNew(60);
      const slices = [jobs.slice(0, 40), jobs.slice(20), jobs.slice(10, 50), jobs.toReversed()];
      const answers = await Promise.all(
        slices.map((slice, n) => queue.settle(slice, n % 2 === 0 ? complete : { kind: "bury", message: "" })),
      );
      const applied = answers.flat().filter((answer) => answer.applied);
      expect(applied.map((answer) => answer.id).toSorted()).toEqual(jobs.map((job) => job.id).toSorted());
    }
    const [{ enqueued, completed, dead, leased } = { enqueued: 0, completed: 0, dead: 0, leased: 0 }] =
      await db.run(books());
    expect({ settled: completed + dead, leased }).toEqual({ settled: enqueued, leased: 0 });
  });

  test("wait for each other, and the second settles what the first left", async () => {
    const jobs = await claimNew(10);
    await inSession(db.pool, async (first) => {
      await first.query("begin");
      for (const job of jobs.slice(0, 5))
        await first.query("select sluice.complete($1, $2)", [job.id, job.leaseKey]);
      const second = queue.settle(jobs, complete);
      await untilWaiting(db.pool);
      await first.query("commit");
      expect((await second).map((answer) => answer.applied)).toEqual(times(10, (n) => n >= 5));
    });
  });
});

describe("settlements that a claim carries", () => {
  const next = { queue: "default", types: ["echo"], limit: 2, leaseSeconds: 60 };

  test("are applied and answered in order, and the next jobs are claimed", async () => {
    const jobs = await claimNew(4);
    await queue.settle(jobs.slice(1, 2), release);
    const settlements: Settlement[] = [
      ...jobs.toReversed().map((job) => ({ job, outcome: complete })),
      { job: { ...only(jobs.slice(0, 1)), leaseKey: noLease }, outcome: retry },
    ];
    const { settled, jobs: claimed } = await db.run(claim(next, settlements));
    expect(settled.map((answer) => answer.id)).toEqual(settlements.map(({ job }) => job.id));
    expect(settled.map((answer) => answer.status)).toEqual([
      "completed",
      "completed",
      null,
      "completed",
      null,
    ]);
    expect(claimed).toMatchObject([{ id: jobs[1]?.id }]);
    expect(await db.run(books())).toMatchObject([{ enqueued: 4, completed: 3, pending: 0, leased: 1 }]);
  });

  test("free room under a concurrency limit for the same claim", async () => {
    await queue.enqueue({}, {});
    const limited = { ...next, types: [{ type: "echo", limits: { concurrency: 1 } }] };
    const first = await db.run(claim(limited));
    expect(await db.run(claim(limited))).toMatchObject({ jobs: [] });
    const settlements = first.jobs.map((job) => ({ job, outcome: complete }));
    expect((await db.run(claim(limited, settlements))).jobs).toHaveLength(1);
  });

  test("are applied even if the claim finds nothing", async () => {
    const jobs = await claimNew(3);
    const settlements = jobs.map((job) => ({ job, outcome: complete }));
    expect(await db.run(claim(next, settlements))).toMatchObject({
      jobs: [],
      hasMore: false,
      settled: jobs.map(({ id }) => ({ id, status: "completed", applied: true })),
    });
  });
});

test("two claims of two types each are settled in one call, into one packed row for each type", async () => {
  await queue.enqueue(...times(12, (n) => ({ type: n % 2 ? "a" : "b" })));
  const claimSix = () => queue.claim({ types: ["a", "b"], limit: 6 });
  const jobs = [...(await claimSix()), ...(await claimSix())];
  expect((await queue.settle(jobs, complete)).map((answer) => answer.applied)).toEqual(times(12, () => true));
  expect([await queue.count("lease"), await queue.count("done")]).toEqual([0, 2]);
});
