// waiting_for: the reason why a pending job does not run.
import { beforeEach, describe, expect, test } from "vitest";
import type { WaitingReason } from "../../src/core/policy/waiting-for.ts";
import { discard, findJob, openBreaker, pause, reapLeases, replay } from "../../src/core/sql/index.ts";
import type { LimitedType } from "../../src/core/type-limits.ts";
import { measure, scansOf, watchStatements } from "../support/explain.ts";
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

describe("key", () => {
  const keyed = { partitionKey: "customer 7" };
  const retry = { kind: "retry", message: "no", retryInSeconds: 60 } as const;
  const enqueueThree = async () => (await queue.enqueue(keyed, keyed, keyed)).map(({ id }) => id);

  test("before anybody claims, a job waits for the first one of its key", async () => {
    const [first = "", second = "", third = ""] = await enqueueThree();
    expect(await reasonOf(first)).toMatchObject({ kind: "turn" });
    for (const id of [second, third])
      expect(await reasonOf(id)).toEqual({ kind: "key", holder: "waiting", jobIds: [first] });
  });

  test("a job waits for the one that is running", async () => {
    const [first = "", second = "", third = ""] = await enqueueThree();
    await queue.claimOne();
    expect(await reasonOf(first)).toBeNull();
    for (const id of [second, third])
      expect(await reasonOf(id)).toEqual({ kind: "key", holder: "leased", jobIds: [first] });
  });

  test("a job waits for a whole run, which is named in order", async () => {
    const [first = "", second = "", third = ""] = await enqueueThree();
    expect(await queue.claim({ limit: 2, run: 2 })).toHaveLength(2);
    expect(await reasonOf(second)).toBeNull();
    expect(await reasonOf(third)).toEqual({ kind: "key", holder: "leased", jobIds: [first, second] });
  });

  test("a job waits for the one that waits for its retry", async () => {
    const [first = "", second = ""] = await enqueueThree();
    await queue.settle([await queue.claimOne()], retry);
    expect(await reasonOf(first)).toMatchObject({ kind: "time", attempt: 1 });
    expect(await reasonOf(second)).toEqual({
      ...{ kind: "key", holder: "scheduled", jobIds: [first] },
      ...{ at: expect.any(String), attempt: 1 },
    });
    await queue.query("update sluice.scheduled set run_at = now()");
    expect(await reasonOf(second)).toMatchObject({ kind: "key", holder: "ready", jobIds: [first] });
  });

  test("a job waits for the one that has the turn and is not claimed, also of another type", async () => {
    const [first = "", second = ""] = (await queue.enqueue({ ...keyed, type: "other" }, keyed)).map(
      ({ id }) => id,
    );
    await queue.settle([await queue.claimOne({ types: ["other"] })], { kind: "release" });
    expect(await reasonOf(first)).toMatchObject({ kind: "turn" });
    expect(await reasonOf(second)).toEqual({ kind: "key", holder: "ready", jobIds: [first] });
  });

  test("a dead job blocks the key until it is replayed or discarded", async () => {
    const [first = "", second = "", third = ""] = await enqueueThree();
    await queue.settle([await queue.claimOne()], { kind: "bury", message: "no" });
    const blocked = { kind: "key", holder: "dead", jobIds: [first], at: expect.any(String) };
    for (const id of [second, third]) expect(await reasonOf(id)).toEqual(blocked);
    await db.run(replay("ann", { id: first }));
    expect(await reasonOf(second)).toEqual({ kind: "key", holder: "ready", jobIds: [first] });
    await queue.settle([await queue.claimOne()], { kind: "bury", message: "no" });
    await db.run(discard("ann", { id: first }));
    expect(await reasonOf(second)).toMatchObject({ kind: "turn" });
  });

  test("while the turn is on its way back, a job waits for the first one before it", async () => {
    const [, second = "", third = ""] = await enqueueThree();
    await queue.settle([await queue.claimOne()], complete);
    expect(await reasonOf(second)).toMatchObject({ kind: "turn" });
    expect(await reasonOf(third)).toEqual({ kind: "key", holder: "waiting", jobIds: [second] });
  });

  test("a delayed job has no place in its key until it is due", async () => {
    const later = await queue.enqueueOne({ ...keyed, delaySeconds: 60 });
    const first = await queue.enqueueOne(keyed);
    expect(await reasonOf(first)).toMatchObject({ kind: "turn" });
    expect(await reasonOf(later)).toMatchObject({ kind: "time", attempt: 0 });
    await queue.query("update sluice.scheduled set run_at = now()");
    expect(await reasonOf(later)).toEqual({ kind: "key", holder: "waiting", jobIds: [first] });
  });

  test("other keys, and the same key of another queue, hold nothing", async () => {
    await queue.enqueue(keyed, { ...keyed, queue: "other" });
    await queue.claimOne();
    await queue.claimOne({ queue: "other" });
    const [other, elsewhere] = await queue.enqueue(
      { partitionKey: "customer 8" },
      { ...keyed, queue: "third" },
    );
    for (const { id } of [other, elsewhere].filter((job) => job !== undefined))
      expect(await reasonOf(id)).toMatchObject({ kind: "turn" });
  });

  test("comes before a pause", async () => {
    const [first = "", second = ""] = await enqueueThree();
    await db.run(pause("ann", { queue: "default" }));
    expect(await reasonOf(first)).toMatchObject({ kind: "pause" });
    expect(await reasonOf(second)).toMatchObject({ kind: "key" });
  });

  test("with 20,000 jobs behind it and 20,000 other turns, the turn is found by a few looks into indexes", async () => {
    const ids = (await queue.enqueue(...times(20_000, () => keyed))).map(({ id }) => id);
    await queue.settle([await queue.claimOne()], { kind: "release" });
    // 20,000 other keys have turns that nobody has claimed. So the statistics say that a key has few jobs.
    await queue.enqueue(...times(20_000, (n) => ({ partitionKey: `customer ${100 + n}`, type: "other" })));
    await queue.query(`
      update sluice.ready set lane = lane.lane, place = seq, seq = nextval('sluice.ready_seq')
      from sluice.lane where lane.lane = -ready.lane and type = 'other'`);
    await queue.query("analyze sluice.ready");
    const client = await db.pool.connect();
    const { take } = await watchStatements(client);
    await client.query("select sluice.waiting_for($1)", [ids[9_999]]); // so that the catalogue is cached
    take();
    const { buffers } = await measure(client, "select sluice.waiting_for($1)", [ids.at(-1)]);
    const scans = scansOf(take());
    client.release();
    expect(scans.filter(({ index }) => index === null)).toEqual([]);
    expect(scans.map(({ index }) => index)).toEqual(
      expect.arrayContaining(["closed_by_key", "scheduled_by_key", "lease_by_deadline", "ready_by_bucket"]),
    );
    expect(buffers).toBeLessThan(200);
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

describe("limit of a share", () => {
  const fair = { fairKey: "tenant 1" };
  const enqueueThree = async () => (await queue.enqueue(fair, fair, fair)).map(({ id }) => id);

  test("a job waits while as many of its fair key run as may", async () => {
    const [, second = ""] = await enqueueThree();
    const other = await queue.enqueueOne({ fairKey: "tenant 2" });
    await queue.claim({ limit: 1, policy: { concurrency: 1 } });
    expect(await reasonOf(second)).toEqual({
      ...{ kind: "limit", limited: "share_concurrency", max: 1, fairKey: "tenant 1" },
    });
    expect(await reasonOf(other)).toMatchObject({ kind: "turn" });
  });

  test("without a cap a job only waits for its turn", async () => {
    const [, second = ""] = await enqueueThree();
    await queue.claim({ limit: 1, policy: {} });
    expect(await reasonOf(second)).toMatchObject({ kind: "turn" });
  });

  test("a job waits until the rate of its fair key lets it start, and so do those behind it", async () => {
    const ids = await enqueueThree();
    for (let claims = 0; claims < 2; claims++) await queue.claim({ limit: 1, policy: { secondsApart: 60 } });
    const [first, ...others] = await Promise.all(ids.map((id) => reasonOf(id)));
    expect(first).toBeNull();
    for (const reason of others) {
      expect(reason).toMatchObject({ kind: "limit", limited: "share_rate", fairKey: "tenant 1" });
      const at = reason?.kind === "limit" && reason.limited === "share_rate" ? reason.at : 0;
      expect(secondsFromNow(new Date(at))).toBeCloseTo(60, -1);
    }
  });

  test("a retry of a fair key waits for its time", async () => {
    const id = await queue.enqueueOne(fair);
    await queue.settle([await queue.claimOne()], { kind: "retry", message: "no", retryInSeconds: 60 });
    expect(await reasonOf(id)).toMatchObject({ kind: "time", attempt: 1 });
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
