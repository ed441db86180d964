import { beforeEach, describe, expect, test } from "vitest";
import type { ClaimedJob } from "../../src/core/job.ts";
import { claim, enqueue, findJob, reapLeases, settle, snapshot } from "../../src/core/sql/index.ts";
import { newJob } from "../support/jobs.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const claimAll = { queue: "default", types: ["echo"], limit: 100, leaseSeconds: 60 };

beforeEach(() => db.pool.query("truncate sluice.job"));

async function enqueueOne(fields = {}): Promise<string> {
  const [job] = await db.run(enqueue(newJob(fields)));
  if (!job) throw new Error("nothing was enqueued");
  return job.id;
}

async function claimOne(options = {}): Promise<ClaimedJob> {
  const [job] = await db.run(claim({ ...claimAll, ...options }));
  if (!job) throw new Error("nothing was claimed");
  return job;
}

async function find(id: string) {
  const [job] = await db.run(findJob(id));
  return job;
}

/** Time passes for the job, not for the test: its lease ends in the past. */
const runOutLease = (id: string) =>
  db.pool.query("update sluice.job set lease_expires_at = now() - interval '1 s' where id = $1", [id]);

describe("claim", () => {
  test("takes the highest priority first, then the oldest", async () => {
    const low = await enqueueOne({ priority: 1 });
    const old = await enqueueOne({ priority: 7 });
    const young = await enqueueOne({ priority: 7 });
    const order = [await claimOne({ limit: 1 }), await claimOne({ limit: 1 }), await claimOne({ limit: 1 })];
    expect(order.map((job) => job.id)).toEqual([old, young, low]);
  });

  test("leaves what is scheduled for later, expired, of another queue or of another type", async () => {
    await enqueueOne({ delaySeconds: 60 });
    await enqueueOne({ expiresAt: new Date(0) });
    await enqueueOne({ queue: "other" });
    await enqueueOne({ type: "other" });
    expect(await db.run(claim(claimAll))).toEqual([]);
  });

  test("gives each of 500 jobs to exactly one of 8 claimers at once", async () => {
    await Promise.all(Array.from({ length: 500 }, () => enqueueOne()));
    const takeAll = async () => {
      const ids: string[] = [];
      for (;;) {
        const jobs = await db.run(claim({ ...claimAll, limit: 7 }));
        if (jobs.length === 0) return ids;
        ids.push(...jobs.map((job) => job.id));
      }
    };
    const taken = (await Promise.all(Array.from({ length: 8 }, takeAll))).flat();
    expect(taken).toHaveLength(500);
    expect(new Set(taken).size).toBe(500);
  });
});

describe("settle", () => {
  test("ends a batch of mixed outcomes in one statement", async () => {
    for (let n = 0; n < 5; n++) await enqueueOne();
    const [done, failed, buried, snoozed, released] = (await db.run(claim(claimAll))) as [
      ClaimedJob,
      ClaimedJob,
      ClaimedJob,
      ClaimedJob,
      ClaimedJob,
    ];
    await db.run(
      settle([
        { job: done, outcome: { kind: "complete", output: { n: 1 } } },
        { job: failed, outcome: { kind: "retry", message: "boom", retryInSeconds: 60 } },
        { job: buried, outcome: { kind: "bury", message: "never", reason: "fatal" } },
        { job: snoozed, outcome: { kind: "snooze", retryInSeconds: 60 } },
        { job: released, outcome: { kind: "release" } },
      ]),
    );
    expect(await find(done.id)).toMatchObject({ status: "completed", output: { n: 1 }, attempts: 1 });
    expect(await find(failed.id)).toMatchObject({
      status: "pending",
      attempts: 1,
      errors: [{ attempt: 1, message: "boom" }],
    });
    expect(await find(buried.id)).toMatchObject({
      status: "dead",
      deadReason: "fatal",
      errors: [{ message: "never" }],
    });
    expect(await find(snoozed.id)).toMatchObject({ status: "pending", attempts: 0, errors: [] });
    expect((await claimOne()).id).toBe(released.id);
  });

  test("a retry of the last attempt is dead with reason exhausted", async () => {
    const id = await enqueueOne({ maxAttempts: 1 });
    const outcome = { kind: "retry", message: "boom", retryInSeconds: 0 } as const;
    expect(await db.run(settle([{ job: await claimOne(), outcome }]))).toEqual([{ id, status: "dead" }]);
    expect(await find(id)).toMatchObject({ status: "dead", deadReason: "exhausted" });
  });

  test("a worker whose lease ran out cannot settle the job", async () => {
    const id = await enqueueOne();
    const first = await claimOne();
    await runOutLease(id);
    await db.run(reapLeases({ limit: 10 }));
    await db.pool.query("update sluice.job set scheduled_at = now() where id = $1", [id]);
    const second = await claimOne();
    const outcome = { kind: "complete", output: null } as const;
    expect(await db.run(settle([{ job: first, outcome }]))).toEqual([]);
    expect(await db.run(settle([{ job: second, outcome }]))).toEqual([{ id, status: "completed" }]);
    expect(await db.run(settle([{ job: second, outcome }]))).toEqual([]);
  });
});

describe("reap", () => {
  test("returns a job whose lease ran out, with the reason in its history", async () => {
    const id = await enqueueOne();
    await claimOne();
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual([]);
    await runOutLease(id);
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual([{ id, status: "pending" }]);
    expect(await find(id)).toMatchObject({
      attempts: 1,
      errors: [{ attempt: 1, message: "the lease ran out" }],
    });
  });

  test("buries a job that was abandoned in its last attempt", async () => {
    const id = await enqueueOne({ maxAttempts: 1 });
    await claimOne();
    await runOutLease(id);
    await db.run(reapLeases({ limit: 10 }));
    expect(await find(id)).toMatchObject({ status: "dead", deadReason: "abandoned" });
  });
});

test("the snapshot says how long the oldest due job has waited", async () => {
  expect(await db.run(snapshot())).toEqual([{ oldestDueSeconds: 0, expiredLeaseSeconds: 0 }]);
  await enqueueOne({ scheduledAt: new Date(Date.now() - 600_000) });
  const [seen] = await db.run(snapshot());
  expect(seen?.oldestDueSeconds).toBeGreaterThan(599);
});

test.each([
  ["priority = 10"],
  ["attempts = 6"],
  ["payload = '[]'"],
  ["status = 'lost'"],
  ["status = 'dead'"],
  ["status = 'processing'"],
  ["status = 'completed'"],
])("the database refuses the impossible state: %s", async (assignment) => {
  const id = await enqueueOne();
  await expect(db.pool.query(`update sluice.job set ${assignment} where id = $1`, [id])).rejects.toThrow(
    /check constraint/,
  );
});
