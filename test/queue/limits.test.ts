import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { claim, openBreaker, settle } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { drain } from "../../src/queue/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { newJob } from "../support/jobs.ts";
import { createTestQueue, lookAt, roomyBudget } from "../support/queue.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const any = z.object({});
const state = { running: 0, most: 0, started: [] as number[], works: false };
const queue = createTestQueue(db, [
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
  defineJob("other", { payload: any, run: () => {} }),
]);
const drainDefault = () => drain(queue, { name: "default", budget: { ...roomyBudget, claimForMs: 2_000 } });
const enqueueMany = (count: number, type: string) =>
  Promise.all(Array.from({ length: count }, () => enqueue(queue, newJob({ type }))));

beforeEach(async () => {
  await emptyQueue(db.pool);
  Object.assign(state, { running: 0, most: 0, started: [], works: false });
  queue.events.length = 0;
});

async function drainUntilDone(drains: number, type: string): Promise<void> {
  const left = async () =>
    Number(
      (await db.pool.query("select pending + leased as n from sluice.books where type = $1", [type])).rows[0]
        ?.n,
    );
  while ((await left()) > 0) await Promise.all(Array.from({ length: drains }, drainDefault));
}

describe("limits across all drains (D5)", () => {
  test("never more at one time than the concurrency, with 8 drains at once", async () => {
    await enqueueMany(120, "narrow");
    await drainUntilDone(8, "narrow");
    expect(state.most).toBe(3);
  });

  test("never more in any period than the rate, with 8 drains at once", async () => {
    await enqueueMany(20, "slow");
    await drainUntilDone(8, "slow");
    const starts = state.started.sort((a, b) => a - b);
    expect(starts).toHaveLength(20);
    // The database stamps the claim; the handler starts a moment after it, and never before.
    for (const [index, at] of starts.entries()) {
      const sixth = starts[index + 5];
      if (sixth !== undefined) expect(sixth - at).toBeGreaterThan(300);
    }
  });

  test("a type at its limit keeps no other from being drained", async () => {
    await enqueueMany(10, "narrow");
    const types = [{ type: "narrow", limits: { concurrency: 3 } }, { type: "other" }];
    const [claimed] = await db.run(claim({ queue: "default", types, limit: 10, leaseSeconds: 60 }));
    const held = claimed?.jobs ?? [];
    expect(held.map((job) => job.type)).toEqual(["narrow", "narrow", "narrow"]);
    await enqueueMany(50, "other");
    expect(await drainDefault()).toMatchObject({ completed: 50, end: "empty" });
    await db.run(settle(held.map((job) => ({ job, outcome: { kind: "complete", output: null } }))));
    expect(await drainDefault()).toMatchObject({ completed: 7 });
  });
});

describe("a circuit breaker (D6)", () => {
  const probeIsDue = () => db.pool.query("update sluice.breaker set probed_at = now() - interval '61 s'");

  test("opens when a type keeps failing, uses up no attempt while open, and closes after a good probe", async () => {
    const jobs = await enqueueMany(60, "broken");
    await drainDefault();
    expect(queue.events.map(({ event }) => event)).toContain("breaker opened");
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
    expect(probed).toMatchObject({ claimed: 1, released: 1 });
    expect(await attempts()).toBe(used);

    state.works = true;
    await probeIsDue();
    await db.pool.query("update sluice.scheduled set run_at = now()");
    await db.pool.query("select sluice.reset_cursors()");
    await drainDefault();
    expect(queue.events.map(({ event }) => event)).toContain("breaker closed");
    await drainDefault();
    expect(await lookAt(db, jobs[0]?.id ?? "")).toMatchObject({ status: "completed" });
  });

  test("lets one job through a minute, whoever asks", async () => {
    await enqueueMany(20, "broken");
    await db.run(openBreaker("broken"));
    await probeIsDue();
    const types = [{ type: "broken" }];
    const claims = await Promise.all(
      Array.from({ length: 8 }, () =>
        db.run(claim({ queue: "default", types, limit: 10, leaseSeconds: 60 })),
      ),
    );
    const jobs = claims.flat().flatMap((claimed) => claimed.jobs);
    expect(jobs.map((job) => job.isProbe)).toEqual([true]);
  });

  test("of one type is no concern of another", async () => {
    await db.run(openBreaker("broken"));
    await enqueueMany(3, "broken");
    await enqueueMany(5, "other");
    expect(await drainDefault()).toMatchObject({ completed: 5, end: "empty" });
  });
});
