// Idempotency keys: one key, one job, at any concurrency and for the whole window.
import { beforeEach, describe, expect, test } from "vitest";
import { enqueue, prune } from "../../src/core/sql/index.ts";
import { newJob } from "../support/jobs.ts";
import { inSession, sqlState, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const callers = 64;
const rounds = 25;

describe("concurrently", () => {
  test("64 callers with one key get one job, and exactly one answer says that it is new", {
    timeout: 60_000,
  }, async () => {
    for (let round = 0; round < rounds; round++) {
      const answers = await Promise.all(
        times(callers, async () => only(await queue.enqueue({ idempotencyKey: `key-${round}` }))),
      );
      expect(new Set(answers.map((answer) => answer.id)).size).toBe(1);
      expect(answers.filter((answer) => !answer.deduplicated)).toHaveLength(1);
    }
    expect(await queue.count("job")).toBe(rounds);
    expect(await queue.count("ready")).toBe(rounds);
  });

  test("64 callers with an expired key make one new job", { timeout: 60_000 }, async () => {
    for (let round = 0; round < 5; round++) {
      const old = await queue.enqueueOne({ idempotencyKey: "again" });
      await queue.query("update sluice.idempotency set expires_at = now() - interval '1 second'");
      const answers = await Promise.all(
        times(callers, async () => only(await queue.enqueue({ idempotencyKey: "again" }))),
      );
      expect(new Set(answers.map((answer) => answer.id)).size).toBe(1);
      expect(answers.filter((answer) => !answer.deduplicated)).toHaveLength(1);
      expect(answers[0]?.id).not.toBe(old);
      await queue.query("update sluice.idempotency set expires_at = now() - interval '1 second'");
    }
  });

  test("batches with the same keys in opposite order do not deadlock and agree", {
    timeout: 60_000,
  }, async () => {
    for (let round = 0; round < rounds; round++) {
      const forth = times(20, (n) => newJob({ idempotencyKey: `${round}/${n}` }));
      const back = forth.toReversed();
      const answers = await Promise.all(
        times(8, async (n) => await db.run(enqueue(n % 2 === 0 ? forth : back))),
      );
      const [first, second] = answers.map((batch) => batch.map((answer) => answer.id));
      expect(first).toEqual(second?.toReversed());
      expect(answers.flat().filter((answer) => !answer.deduplicated)).toHaveLength(20);
    }
    expect(await queue.count("job")).toBe(20 * rounds);
  });

  test("a caller waits for the transaction that owns the key, and gets its job when it commits", async () => {
    await inSession(db.pool, async (owner) => {
      await owner.query("begin");
      const { rows } = await owner.query("select sluice.enqueue('echo', idempotency_key => 'k') as id");
      const second = queue.enqueue({ idempotencyKey: "k" });
      await untilWaiting(db.pool);
      await owner.query("commit");
      expect(await second).toMatchObject([{ id: rows[0].id, deduplicated: true }]);
    });
  });

  test("a caller waits for the transaction that owns the key, and makes a job when it rolls back", async () => {
    await inSession(db.pool, async (owner) => {
      await owner.query("begin");
      const { rows } = await owner.query("select sluice.enqueue('echo', idempotency_key => 'k') as id");
      const second = queue.enqueue({ idempotencyKey: "k" });
      await untilWaiting(db.pool);
      await owner.query("rollback");
      const job = only(await second);
      expect(job).toMatchObject({ deduplicated: false, status: "pending" });
      expect(job.id).not.toBe(rows[0].id);
    });
    expect(await queue.claim()).toHaveLength(1);
  });
});

test("a key that is in one batch twice makes one job", async () => {
  const [first, other, again] = await queue.enqueue(
    { idempotencyKey: "twice" },
    { payload: { n: 1 } },
    { idempotencyKey: "twice" },
  );
  expect(first).toMatchObject({ deduplicated: false });
  expect(again).toMatchObject({ id: first?.id, deduplicated: true, status: "pending" });
  expect(other?.deduplicated).toBe(false);
  expect(await queue.claim()).toHaveLength(2);
});

test("a batch of used and new keys makes only the new jobs", async () => {
  const usedId = await queue.enqueueOne({ idempotencyKey: "used", tags: ["x"], delaySeconds: 60 });
  const [first, second] = await queue.enqueue(
    { idempotencyKey: "used", tags: ["x"], delaySeconds: 60 },
    { idempotencyKey: "new", tags: ["x"], delaySeconds: 60 },
  );
  expect(first).toMatchObject({ id: usedId, deduplicated: true });
  expect(second?.deduplicated).toBe(false);
  for (const table of ["job", "scheduled", "job_tag", "expiry"]) expect(await queue.count(table)).toBe(2);
});

describe("a used key with another request is refused, and none of its batch is written", () => {
  const first = { idempotencyKey: "k", payload: { n: 1 }, tags: ["a"] };
  test.each([
    ["payload", { payload: { n: 2 } }],
    ["type", { type: "other" }],
    ["queue", { queue: "other" }],
    ["priority", { priority: 6 }],
    ["attempts", { maxAttempts: 6 }],
    ["delay", { delaySeconds: 6 }],
    ["schedule", { scheduledAt: new Date() }],
    ["expiry", { expiresAt: new Date(Date.now() + 60_000) }],
    ["partition", { partitionKey: "p" }],
    ["tags", { tags: ["b"] }],
  ])("a request with another %s", async (_, difference) => {
    await queue.enqueueOne(first);
    const batch = [newJob({ idempotencyKey: "new" }), newJob(), newJob({ ...first, ...difference })];
    expect(await sqlState(db.run(enqueue(batch)))).toBe("SL422");
    expect(await queue.count("job")).toBe(1);
    expect(await queue.count("idempotency")).toBe(1);
    expect(await queue.count("ledger")).toBe(1);
  });

  test("two requests within one batch", async () => {
    const batch = [newJob({ idempotencyKey: "k" }), newJob({ idempotencyKey: "k", priority: 1 })];
    expect(await sqlState(db.run(enqueue(batch)))).toBe("SL422");
    expect(await queue.count("job")).toBe(0);
  });

  test("but a request with another trace context counts as the same", async () => {
    const id = await queue.enqueueOne({ ...first, traceparent: "a" });
    expect(await queue.enqueueOne({ ...first, traceparent: "b" })).toBe(id);
  });
});

test("a key is kept after its job's row is gone", async () => {
  const id = await queue.enqueueOne({ idempotencyKey: "k" });
  await queue.settle(await queue.claim(), complete);
  expect(await queue.enqueue({ idempotencyKey: "k" })).toMatchObject([{ id, status: "completed" }]);
  await queue.query("delete from sluice.job");
  await queue.query("delete from sluice.done");
  expect(await queue.enqueue({ idempotencyKey: "k" })).toMatchObject([
    { id, status: "completed", deduplicated: true },
  ]);
  expect(await queue.count("job")).toBe(0);
});

test("a key is kept for seven days, and then makes a new job", async () => {
  const id = await queue.enqueueOne({ idempotencyKey: "k" });
  const window = await queue.query(
    "select round(extract(epoch from expires_at - now()) / 3600)::int as hours from sluice.idempotency",
  );
  expect(window).toEqual([{ hours: 7 * 24 }]);
  await db.run(prune({ limit: 10 }));
  expect(await queue.enqueueOne({ idempotencyKey: "k" })).toBe(id);

  await queue.query("update sluice.idempotency set expires_at = now() - interval '1 second'");
  const next = only(await queue.enqueue({ idempotencyKey: "k", payload: { another: "request" } }));
  expect(next.deduplicated).toBe(false);
  expect(next.id).not.toBe(id);
});
