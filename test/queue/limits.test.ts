// Limits hold across all drains, and a circuit breaker holds back a type that keeps failing.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { FatalError } from "../../src/core/errors.ts";
import { claim, openBreaker, settle } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { bringForward } from "../model/gate/gate-time.ts";
import { newJob } from "../support/jobs.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const any = z.object({});
const state = { running: 0, most: 0, started: [] as number[], works: false };
const ports = createTestPorts(db, [
  defineJob("narrow", {
    payload: any,
    concurrency: 3,
    run: async () => {
      state.most = Math.max(state.most, ++state.running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      state.running--;
    },
  }),
  defineJob("slow", {
    payload: any,
    rate: { limit: 5, per: 0.4 },
    run: () => void state.started.push(Date.now()),
  }),
  defineJob("broken", {
    payload: any,
    maxAttempts: 3,
    backoff: { baseSeconds: 0.001, maxSeconds: 0.001, jitterSeconds: 0 },
    run: () => (state.works ? "fine" : Promise.reject(new Error("down"))),
  }),
  defineJob("flaky", {
    payload: any,
    maxAttempts: 5,
    backoff: { baseSeconds: 1, maxSeconds: 1, jitterSeconds: 0 },
    run: (_, { attempt }) => (attempt === 1 ? Promise.reject(new Error("not yet")) : "fine"),
  }),
  defineJob("dying", { payload: any, run: () => Promise.reject(new FatalError("never")) }),
  defineJob("other", { payload: any, run: () => {} }),
]);
const drainDefault = () =>
  drainQueue(ports, { queue: "default", budget: { ...roomyBudget, claimForMs: 2_000 } });
const enqueueMany = (count: number, type: string) =>
  Promise.all(Array.from({ length: count }, () => enqueue(ports, newJob({ type }))));

beforeEach(async () => {
  await emptyQueue(db.pool);
  Object.assign(state, { running: 0, most: 0, started: [], works: false });
  ports.events.length = 0;
});

async function drainUntilDone(drains: number, type: string): Promise<void> {
  const left = async () =>
    Number(
      (await db.pool.query("select pending + leased as n from sluice.books where type = $1", [type])).rows[0]
        ?.n,
    );
  while ((await left()) > 0) await Promise.all(Array.from({ length: drains }, drainDefault));
}

describe("limits across all drains", () => {
  test("8 concurrent drains never run more jobs at one time than the concurrency", async () => {
    await enqueueMany(120, "narrow");
    await drainUntilDone(8, "narrow");
    expect(state.most).toBe(3);
  });

  test("8 concurrent drains never start more jobs in a period than the rate", async () => {
    await enqueueMany(20, "slow");
    await drainUntilDone(8, "slow");
    const starts = state.started.sort((a, b) => a - b);
    expect(starts).toHaveLength(20);
    // The database sets the time of the claim. The handler starts a moment later, and never before.
    for (const [index, at] of starts.entries()) {
      const sixth = starts[index + 5];
      if (sixth !== undefined) expect(sixth - at).toBeGreaterThan(300);
    }
  });

  test("a type at its limit does not hold back other types", async () => {
    await enqueueMany(10, "narrow");
    const types = [{ type: "narrow", limits: { concurrency: 3 } }, { type: "other" }];
    const claimed = await db.run(claim({ queue: "default", types, limit: 10, leaseSeconds: 60 }));
    const held = claimed.jobs;
    expect(held.map((job) => job.type)).toEqual(["narrow", "narrow", "narrow"]);
    await enqueueMany(50, "other");
    expect(await drainDefault()).toMatchObject({ completed: 50, end: "empty" });
    await db.run(settle(held.map((job) => ({ job, outcome: { kind: "complete", output: null } }))));
    expect(await drainDefault()).toMatchObject({ completed: 7 });
  });
});

describe("a circuit breaker", () => {
  const probeIsDue = () =>
    db.pool.query(`update sluice.breaker
                   set opened_at = least(opened_at, now() - interval '61 s'), probed_at = now() - interval '61 s'`);
  const closeBreaker = (type: string) => db.pool.query("select sluice.close_breaker($1)", [type]);
  const numberOf = async (text: string, type: string) =>
    Number((await db.pool.query<{ n: number }>(text, [type])).rows[0]?.n ?? 0);
  const completedOf = (type: string) =>
    numberOf("select sum(completed) as n from sluice.books where type = $1", type);
  const waitingOf = (type: string) =>
    numberOf("select sum(pending) as n from sluice.books where type = $1", type);
  const isOpen = async (type: string) =>
    (await db.pool.query("select from sluice.breaker where type = $1 and closed_at is null", [type]))
      .rowCount === 1;
  const claimProbe = async (limit = 10) =>
    (await db.run(claim({ queue: "default", types: ["broken"], limit, leaseSeconds: 60 }))).jobs;

  test("opens when a type keeps failing, uses no attempts while open, and closes after a probe completes", async () => {
    const jobs = await enqueueMany(60, "broken");
    await drainDefault();
    expect(ports.events.map(({ event }) => event)).toContain("breaker opened");
    const attempts = async () =>
      Number(
        (await db.pool.query("select sum(attempts) as n from sluice.jobs where type = 'broken'")).rows[0]?.n,
      );
    const used = await attempts();

    await drainDefault();
    await drainDefault();
    expect(await attempts()).toBe(used);

    await probeIsDue();
    const probed = await drainDefault();
    expect(probed).toMatchObject({ claimed: 1, failed: 1 });
    expect(await attempts()).toBe(used + 1);

    state.works = true;
    await probeIsDue();
    await db.pool.query("update sluice.scheduled set run_at = now()");
    await db.pool.query("select sluice.reset_cursors()");
    await drainDefault();
    expect(ports.events.map(({ event }) => event)).toContain("breaker closed");
    await drainDefault();
    const ended = await Promise.all(jobs.map(({ id }) => lookAt(db, id)));
    expect(ended.filter(({ status }) => status !== "completed")).toEqual([]);
  });

  test("closes for a type that works at the second attempt, and all its jobs complete", async () => {
    const jobs = await enqueueMany(400, "flaky");
    let probes = 0;
    for (let round = 0; (await completedOf("flaky")) < jobs.length; round++) {
      expect(round).toBeLessThan(40);
      await drainDefault();
      await bringForward(db.pool);
      if (
        (await isOpen("flaky")) &&
        (await waitingOf("flaky")) === jobs.length - (await completedOf("flaky"))
      ) {
        probes++;
        await probeIsDue();
      }
    }
    expect(probes).toBeLessThanOrEqual(2);
    expect((await db.pool.query("select from sluice.closed")).rowCount).toBe(0);
  });

  test("probes with the same job until that completes or dies, however many others wait", async () => {
    await enqueueMany(1, "broken");
    const { rows } = await db.pool.query(
      "select sluice.enqueue_many('broken', array(select '{}'::jsonb from generate_series(1, 3000)), max_attempts => 2) as id",
    );
    await db.run(openBreaker("broken"));
    const attempts: number[] = [];
    for (let probe = 0; probe < 5; probe++) {
      await probeIsDue();
      const [job] = await claimProbe();
      attempts.push(job?.attempt ?? 0);
      if (job)
        await db.run(settle([{ job, outcome: { kind: "retry", message: "down", retryInSeconds: 0 } }]));
    }
    expect(rows).toHaveLength(3000);
    expect(attempts).toEqual([1, 2, 3, 4, 5]);
  });

  test("buries a probe's job that fails for good or has used up its attempts", async () => {
    const [dies] = await enqueueMany(1, "dying");
    const { id } = await enqueue(ports, newJob({ type: "broken", maxAttempts: 1 }));
    for (const type of ["dying", "broken"]) await db.run(openBreaker(type));
    await probeIsDue();
    await drainDefault();
    expect(await lookAt(db, dies?.id ?? "")).toMatchObject({ status: "dead", deadReason: "fatal" });
    expect(await lookAt(db, id)).toMatchObject({ status: "dead", deadReason: "exhausted" });
  });

  test("lets jobs through in steps after it has closed, and then all", async () => {
    await enqueueMany(300, "broken");
    await db.run(openBreaker("broken"));
    await probeIsDue();
    const sizes: number[] = [];
    for (let step = 0; step < 5; step++) {
      const jobs = await claimProbe(200);
      sizes.push(jobs.length);
      if (step < 4) expect(await claimProbe(200)).toEqual([]); // one step at a time
      await db.run(settle(jobs.map((job) => ({ job, outcome: { kind: "complete", output: null } }))));
      if (step === 0) await closeBreaker("broken");
    }
    expect(sizes).toEqual([1, 4, 16, 64, 200]);
  });

  test("opens again when the first step fails, and lets all jobs through five minutes after it has closed", async () => {
    await enqueueMany(30, "broken");
    await db.run(openBreaker("broken"));
    await closeBreaker("broken");
    await drainDefault();
    expect(await isOpen("broken")).toBe(true);
    await closeBreaker("broken");
    expect(await claimProbe(20)).toHaveLength(4);
    expect(await claimProbe(20)).toEqual([]);
    await db.pool.query(
      "update sluice.breaker set opened_at = now() - interval '1 hour', closed_at = now() - interval '5 minutes'",
    );
    expect(await claimProbe(20)).toHaveLength(20);
  });

  test("applies the type's limits to its steps", async () => {
    await enqueueMany(30, "narrow");
    await db.run(openBreaker("narrow"));
    await closeBreaker("narrow");
    const types = [{ type: "narrow", limits: { concurrency: 3 } }];
    const claimed = await db.run(claim({ queue: "default", types, limit: 10, leaseSeconds: 60 }));
    expect(claimed.jobs).toHaveLength(3);
  });

  test("lets one probe a minute through when claims run concurrently", async () => {
    await enqueueMany(20, "broken");
    await db.run(openBreaker("broken"));
    await probeIsDue();
    const types = [{ type: "broken" }];
    const claims = await Promise.all(
      Array.from({ length: 8 }, () =>
        db.run(claim({ queue: "default", types, limit: 10, leaseSeconds: 60 })),
      ),
    );
    const jobs = claims.flatMap((claimed) => claimed.jobs);
    expect(jobs.map((job) => job.isProbe)).toEqual([true]);
  });

  test("lets no other type into the claim of a step, also when the claim finds an expired job", async () => {
    const expired = await enqueue(ports, newJob({ type: "broken" }));
    await enqueueMany(1, "broken");
    await enqueueMany(3, "other");
    await db.pool.query("update sluice.job set expires_at = now() where id = $1", [expired.id]);
    await db.run(openBreaker("broken"));
    await closeBreaker("broken");
    const types = ["broken", "other"];
    const claimed = await db.run(claim({ queue: "default", types, limit: 10, leaseSeconds: 60 }));
    expect(claimed.jobs.map((job) => job.type)).toEqual(["broken"]);
    expect(claimed.hasMore).toBe(true);
  });

  test("does not hold back other types", async () => {
    await db.run(openBreaker("broken"));
    await enqueueMany(3, "broken");
    await enqueueMany(5, "other");
    expect(await drainDefault()).toMatchObject({ completed: 5, end: "empty" });
  });
});
