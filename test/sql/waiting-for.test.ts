// waiting_for: the reason why a pending job does not run.
import { beforeEach, describe, expect, test } from "vitest";
import type { WaitingReason } from "../../src/core/policy/waiting-for.ts";
import { findJob, openBreaker, pause, reapLeases } from "../../src/core/sql/index.ts";
import type { LimitedType } from "../../src/core/type-limits.ts";
import { oneOfEach } from "../support/one-of-each.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const reasonOf = async (id: string, types: readonly LimitedType[] = []): Promise<WaitingReason | null> =>
  (await db.run(findJob(id, { types })))?.waitingFor ?? null;

describe("only a pending job waits", () => {
  test("a job in another state waits for nothing", async () => {
    const { ready, scheduled, unknown: _, ...others } = await oneOfEach(db, queue);
    for (const id of Object.values(others)) expect(await reasonOf(id)).toBeNull();
    for (const id of [ready, scheduled]) expect(await reasonOf(id)).not.toBeNull();
  });
});

describe("time", () => {
  test("a delayed job waits for its time", async () => {
    const reason = await reasonOf(await queue.enqueueOne({ delaySeconds: 60 }));
    expect(reason).toEqual({ kind: "time", at: expect.any(String), attempt: 0 });
    expect(secondsFromNow(new Date(reason?.kind === "time" ? reason.at : 0))).toBeCloseTo(60, -1);
  });

  test("a job whose attempt failed waits for its retry", async () => {
    const id = await queue.enqueueOne();
    await queue.settle([await queue.claimOne()], { kind: "retry", message: "no", retryInSeconds: 60 });
    expect(await reasonOf(id)).toMatchObject({ kind: "time", attempt: 1 });
  });

  test("a snoozed job has used no attempt", async () => {
    const id = await queue.enqueueOne();
    await queue.settle([await queue.claimOne()], { kind: "snooze", retryInSeconds: 60 });
    expect(await reasonOf(id)).toMatchObject({ kind: "time", attempt: 0 });
  });

  test("a job whose time has come waits for its turn, also before a claim has moved it", async () => {
    const id = await queue.enqueueOne({ delaySeconds: 60 });
    await queue.query("update sluice.scheduled set run_at = now()");
    expect(await reasonOf(id)).toEqual({ kind: "turn", isIsolated: false });
  });

  test("comes before a pause", async () => {
    const id = await queue.enqueueOne({ delaySeconds: 60 });
    await db.run(pause("ann", { queue: "default" }));
    expect(await reasonOf(id)).toMatchObject({ kind: "time" });
  });
});

describe("turn", () => {
  test("a due job that nothing holds waits for its turn", async () => {
    expect(await reasonOf(await queue.enqueueOne())).toEqual({ kind: "turn", isIsolated: false });
  });

  test("an abandoned job waits to run apart from others", async () => {
    const id = await queue.enqueueOne();
    await queue.claimOne({ leaseSeconds: -1 });
    const backoff = { baseSeconds: 0.001, maxSeconds: 0.001, jitterSeconds: 0 };
    await db.run(reapLeases({ limit: 10, backoffs: { echo: backoff } }));
    await queue.query("update sluice.scheduled set run_at = now()");
    expect(await reasonOf(id)).toEqual({ kind: "turn", isIsolated: true });
  });
});

describe("pause", () => {
  test.each([{ queue: "default" }, { type: "echo" }])("a job waits while %o is paused", async (what) => {
    const id = await queue.enqueueOne();
    await db.run(pause("ann", what as { queue: string }));
    expect(await reasonOf(id)).toEqual({
      kind: "pause",
      paused: Object.keys(what)[0],
      since: expect.any(String),
    });
  });

  test("the pause of another queue or type does not hold it", async () => {
    const id = await queue.enqueueOne();
    await db.run(pause("ann", { queue: "echo" }));
    await db.run(pause("ann", { type: "default" }));
    expect(await reasonOf(id)).toMatchObject({ kind: "turn" });
  });

  test("comes before a breaker", async () => {
    const id = await queue.enqueueOne();
    await db.run(pause("ann", { type: "echo" }));
    await db.run(openBreaker("echo"));
    expect(await reasonOf(id)).toMatchObject({ kind: "pause" });
  });
});

describe("breaker", () => {
  const close = () => queue.query("select sluice.close_breaker('echo')");

  test("a job waits while the breaker of its type is open", async () => {
    const id = await queue.enqueueOne();
    await db.run(openBreaker("other"));
    expect(await reasonOf(id)).toMatchObject({ kind: "turn" });
    await db.run(openBreaker("echo"));
    expect(await reasonOf(id)).toEqual({ kind: "breaker", state: "open", since: expect.any(String) });
  });

  test("a job waits while the breaker closes in steps, until the last step has ended", async () => {
    const jobs = await queue.enqueue(...times(200, () => ({})));
    const last = jobs.at(-1)?.id ?? "";
    await db.run(openBreaker("echo"));
    await close();
    for (const step of [4, 16, 64]) {
      expect(await reasonOf(last)).toMatchObject({ kind: "breaker", state: "closing" });
      const claimed = await queue.claim({ limit: 100 });
      expect(claimed).toHaveLength(step);
      expect(await reasonOf(last)).toMatchObject({ kind: "breaker", state: "closing" });
      await queue.settle(claimed, complete);
    }
    expect(await reasonOf(last)).toMatchObject({ kind: "turn" });
  });

  test("a breaker that closed long ago holds nothing", async () => {
    const id = await queue.enqueueOne();
    await db.run(openBreaker("echo"));
    await close();
    await queue.query(
      "update sluice.breaker set opened_at = now() - interval '1 hour', closed_at = now() - interval '6 minutes'",
    );
    expect(await reasonOf(id)).toMatchObject({ kind: "turn" });
  });

  test("comes before a limit", async () => {
    const types = [{ type: "echo", limits: { concurrency: 1 } }];
    await queue.enqueueOne();
    await queue.claim({ types });
    const id = await queue.enqueueOne();
    await db.run(openBreaker("echo"));
    expect(await reasonOf(id, types)).toMatchObject({ kind: "breaker" });
  });
});

describe("limit", () => {
  const concurrency = [{ type: "echo", limits: { concurrency: 2 } }];
  const rate = [{ type: "echo", limits: { rate: { limit: 2, perSeconds: 60 } } }];

  test("a job waits while as many of its type run as may", async () => {
    const jobs = await queue.enqueue(...times(3, () => ({})));
    const last = jobs[2]?.id ?? "";
    expect(await reasonOf(last, concurrency)).toMatchObject({ kind: "turn" });
    const claimed = await queue.claim({ types: concurrency });
    expect(claimed).toHaveLength(2);
    expect(await reasonOf(last, concurrency)).toEqual({ kind: "limit", limited: "concurrency", max: 2 });
    await queue.settle(claimed.slice(1), complete);
    expect(await reasonOf(last, concurrency)).toMatchObject({ kind: "turn" });
  });

  test("a job waits while as many of its type have started as may", async () => {
    const jobs = await queue.enqueue(...times(3, () => ({})));
    const last = jobs[2]?.id ?? "";
    await queue.settle(await queue.claim({ types: rate }), complete);
    expect(await reasonOf(last, rate)).toEqual({ kind: "limit", limited: "rate", max: 2, seconds: 60 });
  });

  test("with both limits, the one that holds is named", async () => {
    const both = [{ type: "echo", limits: { concurrency: 2, rate: { limit: 3, perSeconds: 60 } } }];
    const jobs = await queue.enqueue(...times(5, () => ({})));
    const last = jobs[4]?.id ?? "";
    const claimed = await queue.claim({ types: both });
    expect(await reasonOf(last, both)).toMatchObject({ limited: "concurrency" });
    await queue.settle(claimed, complete);
    expect(await queue.claim({ types: both })).toHaveLength(1);
    expect(await reasonOf(last, both)).toMatchObject({ limited: "rate" });
  });

  test("the limits of other types hold nothing", async () => {
    await queue.enqueue({}, {});
    const [held] = await queue.claim({ types: [{ type: "echo", limits: { concurrency: 1 } }] });
    expect(held).toBeDefined();
    const id = await queue.enqueueOne({ type: "other" });
    expect(await reasonOf(id, [{ type: "echo", limits: { concurrency: 1 } }])).toMatchObject({
      kind: "turn",
    });
  });
});
