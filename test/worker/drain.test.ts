// Drain rounds in workerd: overlapping rounds, several queues, handlers, limits and breakers.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { defineJob, Snooze } from "../../src/index.ts";
import { useDeployment } from "./deployment.ts";

const any = z.object({});
const log = { runs: [] as string[], gates: [] as (() => void)[], running: 0, most: 0, works: false };
const many = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n));
const secondsUntil = (iso: string) => (Date.parse(iso) - Date.now()) / 1000;

const deployment = useDeployment([
  defineJob("echo", {
    payload: z.object({ n: z.number() }),
    timeoutSeconds: 10,
    run: ({ n }, { jobId }) => {
      log.runs.push(jobId);
      return n;
    },
  }),
  // Ends when more jobs have started than one drain holds at a time, which proves that two drains are at work.
  defineJob("crowded", {
    payload: any,
    run: async (_, { jobId }) => {
      log.runs.push(jobId);
      if (log.runs.length === 250) for (const open of log.gates) open();
      if (log.runs.length < 250) await new Promise<void>((open) => log.gates.push(open));
    },
  }),
  defineJob("sleeper", {
    payload: any,
    queue: "heavy",
    run: () => new Promise<void>((open) => log.gates.push(open)),
  }),
  defineJob("throws", { payload: any, run: () => Promise.reject(new Error("no such luck")) }),
  defineJob("hangs", { payload: any, timeoutSeconds: 0.1, run: () => new Promise(() => {}) }),
  defineJob("snoozes", { payload: any, run: () => Promise.reject(new Snooze(9)) }),
  defineJob("narrow", {
    payload: any,
    concurrency: 3,
    run: async () => {
      log.most = Math.max(log.most, ++log.running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      log.running--;
    },
  }),
  defineJob("paced", { payload: any, rate: { limit: 10, per: "hour" }, run: () => {} }),
  defineJob("broken", {
    payload: any,
    run: () => (log.works ? "fine" : Promise.reject(new Error("down"))),
  }),
]);
const { fire, look, query, enqueueMany } = deployment;

beforeEach(() => {
  Object.assign(log, { runs: [], gates: [], running: 0, most: 0, works: false });
});

async function statuses(type: string): Promise<Record<string, number>> {
  const text = "select status, count(*)::int as jobs from sluice.jobs where type = $1 group by status";
  const rows = await query<{ status: string; jobs: number }>(text, [type]);
  return Object.fromEntries(rows.map(({ status, jobs }) => [status, jobs]));
}

async function drained(type: string) {
  const [id = ""] = await enqueueMany(type, [{}]);
  await fire();
  return look(id);
}

describe("two rounds that overlap", () => {
  test("run each job once", async () => {
    const ids = await enqueueMany(
      "crowded",
      many(400, () => ({})),
    );
    await Promise.all([fire(), fire()]);
    expect(log.runs.toSorted()).toEqual(ids.toSorted());
    expect(await statuses("crowded")).toEqual({ completed: 400 });
    const rounds = await query<{ completed: number; lost: number }>(
      "select completed, lost from sluice.round",
    );
    expect(rounds.map(({ lost }) => lost)).toEqual([0, 0]);
    expect(Math.min(...rounds.map(({ completed }) => completed))).toBeGreaterThan(0);
  });

  test("run no more jobs of a type at one time than its concurrency", async () => {
    await enqueueMany(
      "narrow",
      many(60, () => ({})),
    );
    for (let rounds = 0; (await statuses("narrow")).completed !== 60; rounds++) {
      expect(rounds).toBeLessThan(60);
      await Promise.all(many(4, () => fire()));
    }
    expect(log.most).toBe(3);
  });

  test("start no more jobs of a type in a period than its rate", async () => {
    await enqueueMany(
      "paced",
      many(40, () => ({})),
    );
    await Promise.all(many(4, () => fire()));
    await Promise.all(many(4, () => fire()));
    expect(await statuses("paced")).toEqual({ completed: 10, pending: 30 });
  });
});

describe("two queues", () => {
  test("drain independently: one finishes while all jobs of the other are still running", async () => {
    await enqueueMany(
      "sleeper",
      many(20, () => ({})),
      { queue: "heavy" },
    );
    await enqueueMany(
      "echo",
      many(50, (n) => ({ n })),
    );
    const round = fire();
    await expect.poll(() => statuses("echo"), { timeout: 5000 }).toEqual({ completed: 50 });
    expect(await statuses("sleeper")).toEqual({ processing: 20 });
    expect(log.gates).toHaveLength(20);
    for (const open of log.gates) open();
    await round;
    expect(await statuses("sleeper")).toEqual({ completed: 20 });
  });
});

describe("a handler", () => {
  test("that throws is retried after the backoff, and its error is kept", async () => {
    const job = await drained("throws");
    expect(job).toMatchObject({ status: "pending", attempts: 1, error: "no such luck" });
    expect(secondsUntil(job.scheduled_at)).toBeGreaterThan(25);
    expect(secondsUntil(job.scheduled_at)).toBeLessThan(46);
  });

  test("that does not end fails at its timeout", async () => {
    expect(await drained("hangs")).toMatchObject({
      status: "pending",
      attempts: 1,
      error: "timed out after 0.1 s",
    });
  });

  test("that snoozes runs again at the time it gave, without counting the attempt", async () => {
    const job = await drained("snoozes");
    expect(job).toMatchObject({ status: "pending", attempts: 0, error: null });
    expect(secondsUntil(job.scheduled_at)).toBeGreaterThan(5);
    expect(secondsUntil(job.scheduled_at)).toBeLessThan(10);
  });
});

describe("a circuit breaker", () => {
  const breakers = () => query("select type, closed_at is null as is_open from sluice.breaker");
  const probeIsDue = () =>
    query(`update sluice.breaker
           set opened_at = opened_at - interval '61 s', probed_at = now() - interval '61 s'`);

  test("opens for a type that keeps failing, lets one probe through, and closes when the probe completes", async () => {
    await enqueueMany(
      "broken",
      many(30, () => ({})),
    );
    await fire();
    expect(await breakers()).toEqual([{ type: "broken", is_open: true }]);

    await enqueueMany(
      "broken",
      many(10, () => ({})),
    );
    await Promise.all([fire(), fire()]);
    const fresh =
      "select count(*)::int as jobs from sluice.ready join sluice.lane using (lane) where attempt = 0";
    expect(await query(fresh)).toEqual([{ jobs: 10 }]);

    log.works = true;
    await probeIsDue();
    await Promise.all([fire(), fire()]);
    expect(await breakers()).toEqual([{ type: "broken", is_open: false }]);
    await deployment.bringForward();
    await fire();
    expect(await statuses("broken")).toEqual({ completed: 40 });
  });
});
