// reap: leases that ran out and expired jobs are handled in bounded steps, and two reapers may run concurrently.
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { backoffSeconds, backoffWaits, defaultBackoff } from "../../src/core/policy/backoff.ts";
import { cancel, reapExpired, reapLeases } from "../../src/core/sql/index.ts";
import { makeOlder } from "../support/old-jobs.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000);

describe("a lease that ran out", () => {
  test("makes its job pending after a backoff, with the attempt counted", async () => {
    const id = await queue.enqueueOne();
    await queue.claimOne({ leaseSeconds: -1, worker: "w-1" });
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 1, buried: 0 });
    const job = await queue.find(id);
    expect(job).toMatchObject({
      ...{ status: "pending", attempts: 1 },
      errors: [{ attempt: 1, message: "the lease ran out", worker: "w-1" }],
    });
    expect(secondsFromNow(job.scheduledAt)).toBeGreaterThan(28);
    expect(secondsFromNow(job.scheduledAt)).toBeLessThan(46);
  });

  test("buries its job as abandoned after the last attempt", async () => {
    const id = await queue.enqueueOne({ maxAttempts: 1 });
    await queue.claimOne({ leaseSeconds: -1 });
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 0, buried: 1 });
    expect(await queue.find(id)).toMatchObject({ status: "dead", deadReason: "abandoned", attempts: 1 });
  });

  test("makes pending the unsettled jobs of its batch, and not the settled ones", async () => {
    await queue.enqueue(...times(5, () => ({})));
    const jobs = await queue.claim({ leaseSeconds: -1 });
    await queue.settle(jobs.slice(0, 3), complete);
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 2, buried: 0 });
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 0, buried: 0 });
  });

  test("is reaped only after its deadline", async () => {
    await queue.enqueueOne();
    const job = await queue.claimOne({ leaseSeconds: 60 });
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 0, buried: 0 });
    expect(await queue.settle([job], complete)).toMatchObject([{ applied: true }]);
  });

  test("is skipped while a settle locks it", async () => {
    await queue.enqueueOne();
    const job = await queue.claimOne({ leaseSeconds: -1 });
    await inSession(db.pool, async (settler) => {
      await settler.query("begin");
      await settler.query("select sluice.complete($1, $2)", [job.id, job.leaseKey]);
      expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 0, buried: 0 });
      await settler.query("commit");
    });
    expect(await queue.find(job.id)).toMatchObject({ status: "completed" });
  });

  test("is reaped within the limit, the longest overdue first", async () => {
    await queue.enqueue(...times(5, () => ({})));
    const overdue = [];
    for (let n = 1; n <= 5; n++) overdue.push(await queue.claimOne({ leaseSeconds: -n }));
    expect(await db.run(reapLeases({ limit: 2 }))).toEqual({ returned: 2, buried: 0 });
    expect(await queue.find(overdue[4]?.id ?? "")).toMatchObject({ status: "pending" });
    expect(await queue.find(overdue[0]?.id ?? "")).toMatchObject({ status: "processing" });
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 3, buried: 0 });
  });

  test("counts against the limit with its jobs: the lease that reaches it is the last", async () => {
    await queue.enqueue(...times(50, () => ({})));
    for (let n = 0; n < 5; n++) await queue.claim({ limit: 10, leaseSeconds: -1 });
    expect(await db.run(reapLeases({ limit: 25 }))).toEqual({ returned: 30, buried: 0 });
    expect(await db.run(reapLeases({ limit: 25 }))).toEqual({ returned: 20, buried: 0 });
  });

  test("makes its job pending after the backoff of its type, if the call has one", async () => {
    const [own, other] = await queue.enqueue({ type: "quick" }, { type: "other" });
    await queue.claim({ types: ["quick", "other"], leaseSeconds: -1 });
    const backoffs = { quick: { baseSeconds: 5, maxSeconds: 60, jitterSeconds: 0 } };
    await db.run(reapLeases({ limit: 10, backoffs }));
    const waits = async (id = "") => secondsFromNow((await queue.find(id)).scheduledAt);
    expect(await waits(own?.id)).toBeCloseTo(5, 0);
    expect(await waits(other?.id)).toBeGreaterThan(25);
  });

  test("counts as an abandonment, and a failed attempt does not", async () => {
    await queue.enqueueOne();
    const next = async () => {
      await queue.query("update sluice.scheduled set run_at = now() - interval '1 s'");
      await queue.query("select sluice.reset_cursors()");
      return queue.claimOne({ leaseSeconds: -1 });
    };
    await next();
    await db.run(reapLeases({ limit: 10 }));
    await queue.settle([await next()], { kind: "retry", message: "busy", retryInSeconds: 1 });
    await next();
    await db.run(reapLeases({ limit: 10 }));
    expect(await next()).toMatchObject({ attempt: 4, abandonments: 2 });
  });

  test("is reaped once by many concurrent reapers", async () => {
    await queue.enqueue(...times(50, () => ({})));
    for (let n = 0; n < 10; n++) await queue.claim({ limit: 5, leaseSeconds: -1 });
    const reports = await Promise.all(times(8, () => db.run(reapLeases({ limit: 100 }))));
    expect(reports.reduce((sum, report) => sum + report.returned, 0)).toBe(50);
    expect(await queue.count("scheduled")).toBe(50);
  });

  test("has the same backoff in SQL as a failed attempt has in TypeScript", async () => {
    const number = (max: number) => fc.double({ min: 0.001, max, noNaN: true });
    const backoffs = fc.sample(
      fc.record({ baseSeconds: number(1e5), maxSeconds: number(1e6), jitterSeconds: number(1e4) }),
      { numRuns: 50, seed: 1 },
    );
    for (const backoff of [defaultBackoff, ...backoffs]) {
      const json = JSON.stringify({ waits: backoffWaits(backoff), jitter: backoff.jitterSeconds });
      const rows = await queue.query<{ attempt: number; seconds: number }>(
        `select attempt, sluice.backoff_seconds(attempt, $1::jsonb) as seconds
         from generate_series(1, 20) as attempt, generate_series(1, 20)`,
        [json],
      );
      expect(rows).toHaveLength(400);
      for (const { attempt, seconds } of rows) {
        expect(seconds).toBeGreaterThanOrEqual(backoffSeconds(backoff, { attempt, random: 0 }));
        expect(seconds).toBeLessThanOrEqual(backoffSeconds(backoff, { attempt, random: 1 }));
      }
      expect(new Set(rows.map(({ seconds }) => seconds)).size).toBeGreaterThan(200);
    }
  });
});

describe("an expired job", () => {
  test.each([
    ["ready", {}],
    ["scheduled", { scheduledAt: inSeconds(60), expiresAt: inSeconds(120) }],
  ])("is buried at the time that its producer set: %s", async (_, fields) => {
    const id = await queue.enqueueOne({ expiresAt: inSeconds(60), ...fields });
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(0);
    await queue.query("update sluice.job set expires_at = now()");
    await queue.query("update sluice.expiry set expires_at = now()");
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(1);
    expect(await queue.find(id)).toMatchObject({ status: "dead", deadReason: "expired", attempts: 0 });
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(0);
  });

  test("is buried after 30 days by default, whether it is ready or waits for a retry", async () => {
    const [first, second, third] = await queue.enqueue({}, {}, {});
    await queue.settle([await queue.claimOne()], { kind: "retry", message: "", retryInSeconds: 60 });
    const waiting = await makeOlder(queue, first?.id ?? "", 31);
    const ready = await makeOlder(queue, second?.id ?? "", 31);
    const young = await makeOlder(queue, third?.id ?? "", 29);
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(2);
    for (const id of [waiting, ready]) expect(await queue.find(id)).toMatchObject({ deadReason: "expired" });
    expect(await queue.find(young)).toMatchObject({ status: "pending" });
  });

  test("is not buried after 30 days if its producer set a later time", async () => {
    const id = await makeOlder(queue, await queue.enqueueOne({ expiresAt: inSeconds(3600) }), 31);
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(0);
    expect(await queue.claim()).toMatchObject([{ id }]);
  });

  test("may finish while it is being processed", async () => {
    await queue.enqueueOne({ expiresAt: inSeconds(60) });
    const job = await queue.claimOne();
    await queue.query("update sluice.job set expires_at = now()");
    await queue.query("update sluice.expiry set expires_at = now()");
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(0);
    expect(await queue.settle([job], complete)).toMatchObject([{ applied: true, status: "completed" }]);
  });

  test("stays cancelled if it was cancelled before", async () => {
    const id = await queue.enqueueOne({ expiresAt: inSeconds(-1) });
    await db.run(cancel(id));
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(0);
    expect(await queue.find(id)).toMatchObject({ status: "cancelled" });
  });

  test("is buried within the limit", async () => {
    await queue.enqueue(...times(25, () => ({ expiresAt: inSeconds(-1) })));
    const buried = [];
    for (let step = 0; step < 4; step++) buried.push(await db.run(reapExpired({ limit: 10 })));
    expect(buried).toEqual([10, 10, 5, 0]);
  });

  test("is left alone while an open transaction holds it, and buried after that", async () => {
    const debounce = { key: "k", mode: "first" as const, seconds: 60 };
    const id = await queue.enqueueOne({ debounce, expiresAt: inSeconds(120) });
    const other = await queue.enqueueOne({ expiresAt: inSeconds(60) });
    await queue.query("update sluice.job set expires_at = now()");
    await queue.query("update sluice.expiry set expires_at = now()");
    await inSession(db.pool, async (caller) => {
      await caller.query("begin");
      await caller.query("select sluice.enqueue('echo', '{}', debounce => $1)", [debounce]); // keeps the job, and its row locked
      expect(await db.run(reapExpired({ limit: 10 }))).toBe(1);
      expect(await queue.find(other)).toMatchObject({ deadReason: "expired" });
      expect(await queue.find(id)).toMatchObject({ status: "pending" });
    });
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(1);
    expect(await queue.find(id)).toMatchObject({ deadReason: "expired" });
    expect(await queue.count("expiry")).toBe(0);
  });

  test("that a replay has renewed leaves no row behind", async () => {
    const id = await queue.enqueueOne({ expiresAt: inSeconds(-1) });
    await queue.query("update sluice.job set expires_at = now() + interval '1 day'"); // as a replay does
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(0);
    expect(await queue.find(id)).toMatchObject({ status: "pending" });
    expect(await queue.count("expiry")).toBe(0);
  });

  test("is buried once by many concurrent reapers and claimers", async () => {
    await queue.enqueue(...times(100, () => ({ expiresAt: inSeconds(-1) })));
    const [claims] = await Promise.all([
      Promise.all(times(4, () => queue.claim({ limit: 20 }))),
      Promise.all(times(4, () => db.run(reapExpired({ limit: 50 })))),
    ]);
    await db.run(reapExpired({ limit: 100 }));
    expect(claims.flat()).toEqual([]);
    expect([await queue.count("closed"), await queue.count("ready")]).toEqual([100, 0]);
  });
});
