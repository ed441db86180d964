// extend: claimed jobs keep their lease for longer, whole leases or parts of them.

import { beforeEach, expect, test } from "vitest";
import type { Outcome } from "../../src/core/job.ts";
import { books, extend, extendOne, reapLeases } from "../../src/core/sql/index.ts";
import { inSession, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

async function claimNew(count: number, leaseSeconds = 60) {
  await queue.enqueue(...times(count, () => ({})));
  return queue.claim({ limit: count, leaseSeconds });
}

/** The number of jobs and the minutes left of each lease, the longest first. */
const leases = () =>
  queue.query<{ jobs: number; minutes: number }>(`
    select cardinality(ids) as jobs, round(extract(epoch from deadline - now()) / 60)::int as minutes
    from sluice.lease order by deadline desc`);

test("a whole lease gets a later deadline", async () => {
  const jobs = await claimNew(3);
  const extended = await db.run(extend(jobs, { seconds: 600 }));
  expect(extended.map((job) => job.id).toSorted()).toEqual(jobs.map((job) => job.id).toSorted());
  for (const job of extended) expect(secondsFromNow(job.leaseExpiresAt)).toBeCloseTo(600, -1);
  expect(await leases()).toEqual([{ jobs: 3, minutes: 10 }]);
});

test("part of a lease gets a later deadline, the rest keeps its own, and both can be settled", async () => {
  const jobs = await claimNew(10);
  const part = [jobs[1], jobs[4], jobs[9]].flatMap((job) => job ?? []);
  expect(await db.run(extend(part, { seconds: 600 }))).toHaveLength(3);
  expect(await leases()).toEqual([
    { jobs: 3, minutes: 10 },
    { jobs: 7, minutes: 1 },
  ]);
  expect((await queue.settle(jobs, complete)).every((answer) => answer.applied)).toBe(true);
  expect(await db.run(books())).toMatchObject([{ completed: 10, leased: 0 }]);
  expect(await leases()).toEqual([]);
});

test("the part that was not extended runs out, and the other stays leased", async () => {
  const jobs = await claimNew(4, -1);
  const [kept] = jobs;
  await db.run(extend(jobs.slice(0, 1), { seconds: 600 }));
  expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 3, buried: 0 });
  expect((await queue.settle(jobs, complete)).map((answer) => answer.applied)).toEqual([
    true,
    false,
    false,
    false,
  ]);
  expect(await queue.find(kept?.id ?? "")).toMatchObject({ status: "completed" });
});

test("jobs keep their attempts and abandonments when a lease is split", async () => {
  const jobs = await claimNew(3);
  await queue.settle(jobs.slice(0, 1), { kind: "retry", message: "", retryInSeconds: 0 });
  await queue.settle(jobs.slice(1), { kind: "release" });
  const again = await queue.claim();
  await db.run(extend(again.slice(1, 2), { seconds: 600 }));
  await queue.settle(again, complete);
  const attempts = await queue.query("select attempts from sluice.jobs order by id");
  expect(attempts).toEqual([{ attempts: 2 }, { attempts: 1 }, { attempts: 1 }]);
});

test("a lease is never shortened", async () => {
  const jobs = await claimNew(2, 600);
  for (const part of [jobs, jobs.slice(1)]) {
    const extended = await db.run(extend(part, { seconds: 1 }));
    for (const job of extended) expect(secondsFromNow(job.leaseExpiresAt)).toBeCloseTo(600, -1);
  }
  expect(new Set((await leases()).map((lease) => lease.minutes))).toEqual(new Set([10]));
});

test("extending a job twice, in two calls or in one, leaves it in one lease", async () => {
  const jobs = await claimNew(4);
  const part = jobs.slice(0, 2);
  for (const asked of [part, part, [...part, ...part], jobs]) {
    const extended = await db.run(extend(asked, { seconds: 600 }));
    expect(new Set(extended.map((job) => job.id)).size).toBe(extended.length);
    expect(extended).toHaveLength(new Set(asked).size);
  }
  expect((await queue.settle(jobs, complete)).map((answer) => answer.applied)).toEqual([
    true,
    true,
    true,
    true,
  ]);
});

test("a lost lease is not extended, and the answer leaves its jobs out", async () => {
  const old = await claimNew(2);
  await queue.settle(old, { kind: "release" });
  const current = await queue.claim();
  expect(await db.run(extend(old, { seconds: 600 }))).toEqual([]);
  expect(await db.run(extend([...old, ...current], { seconds: 600 }))).toHaveLength(2);
  await queue.settle(current.slice(1), complete);
  expect(await db.run(extend(current, { seconds: 600 }))).toMatchObject([{ id: current[0]?.id }]);
});

// A settle that completes whole leases locks them in a different way, so both ways are tested.
const bury: Outcome = { kind: "bury", message: "no" };
test.each([
  { outcome: complete, counted: { completed: 6, dead: 0, leased: 0 } },
  { outcome: bury, counted: { completed: 0, dead: 6, leased: 0 } },
])(
  "a settle ($outcome.kind) that waits for an extend finds both parts of the split lease",
  async ({ outcome, counted }) => {
    const jobs = await claimNew(6);
    await inSession(db.pool, async (extender) => {
      await extender.query("begin");
      await extender.query("select * from sluice.extend($1::uuid[], $2::uuid[], 600)", [
        jobs.slice(0, 3).map((job) => job.id),
        jobs.slice(0, 3).map((job) => job.leaseKey),
      ]);
      const settled = queue.settle(jobs, outcome);
      await untilWaiting(db.pool);
      await extender.query("commit");
      expect((await settled).map((answer) => answer.applied)).toEqual(times(6, () => true));
    });
    expect(await db.run(books())).toMatchObject([counted]);
  },
);

test("an extend that waits for a settle extends the jobs that the settle left", async () => {
  const jobs = await claimNew(6);
  await inSession(db.pool, async (settler) => {
    await settler.query("begin");
    await settler.query("select sluice.settle($1::uuid[], $2::uuid[])", [
      jobs.slice(0, 2).map((job) => job.id),
      jobs.slice(0, 2).map((job) => job.leaseKey),
    ]);
    const extended = db.run(extend(jobs, { seconds: 600 }));
    await untilWaiting(db.pool);
    await settler.query("commit");
    expect((await extended).map(({ id }) => id).sort()).toEqual(
      jobs
        .slice(2)
        .map((job) => job.id)
        .sort(),
    );
  });
  expect(await leases()).toEqual([{ jobs: 4, minutes: 10 }]);
});

test("jobs of several leases are extended in one call", async () => {
  const jobs = [...(await claimNew(2)), ...(await claimNew(2))];
  expect(await db.run(extend(jobs.slice(1, 3), { seconds: 600 }))).toHaveLength(2);
  expect(await leases()).toEqual([
    { jobs: 1, minutes: 10 },
    { jobs: 1, minutes: 10 },
    { jobs: 1, minutes: 1 },
    { jobs: 1, minutes: 1 },
  ]);
});

test("extending one job answers with the job as find shows it", async () => {
  const [first, second] = await claimNew(2);
  if (!first || !second) throw new Error("two jobs were not claimed");
  const changed = await db.run(extendOne(first, { seconds: 600 }));
  expect(changed).toMatchObject({ applied: true, job: { status: "processing" } });
  expect(changed?.job).toEqual(await queue.find(first.id));
  expect(secondsFromNow(changed?.leaseExpiresAt ?? new Date(0))).toBeCloseTo(600, -1);
  expect(await leases()).toEqual([
    { jobs: 1, minutes: 10 },
    { jobs: 1, minutes: 1 },
  ]);
});

test("extending one job answers with the unchanged job if its lease is lost, and with null if it does not exist", async () => {
  const [job] = await claimNew(1);
  if (!job) throw new Error("no job was claimed");
  await queue.settle([job], complete);
  expect(await db.run(extendOne(job, { seconds: 600 }))).toMatchObject({
    applied: false,
    job: { status: "completed" },
    leaseExpiresAt: null,
  });
  const unknown = { ...job, id: "01900000-0000-7000-8000-000000000000" };
  expect(await db.run(extendOne(unknown, { seconds: 600 }))).toBe(null);
});
