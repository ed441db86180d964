// An abandoned job may have killed its worker. It is isolated: claimed in a small group at first, and then alone.
import { beforeEach, describe, expect, test } from "vitest";
import { reapLeases, replay } from "../../src/core/sql/index.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

/** Enqueues jobs, abandons them once, and makes them ready again. */
async function abandon(count: number, fields = {}): Promise<string[]> {
  const jobs = await queue.enqueue(...times(count, () => fields));
  await abandonClaimed({ limit: count });
  return jobs.map((job) => job.id);
}

async function abandonClaimed({ limit }: { limit: number }) {
  const claimed = await queue.claim({ leaseSeconds: -1, limit });
  await db.run(reapLeases({ limit: 1000 }));
  await makeReady();
  return claimed;
}

async function makeReady() {
  await queue.query("update sluice.scheduled set run_at = now() - interval '1 second'");
  await queue.query("select sluice.reset_cursors()");
  await queue.query("select sluice.promote_due(1000, null)");
}

/** Claims and completes until nothing is left. Answers with the size of each claim and its jobs' abandonments. */
async function batches(options: { takeIsolated?: boolean } = {}) {
  const found: [size: number, abandonments: number][] = [];
  for (;;) {
    const { jobs, hasMore } = await queue.claimBatch({ limit: 100, ...options });
    if (jobs.length > 0) found.push([jobs.length, Math.max(...jobs.map((job) => job.abandonments))]);
    if (jobs.length > 0) await queue.settle(jobs, complete);
    if (!hasMore) return found;
  }
}

describe("jobs that are abandoned once", () => {
  test("are claimed in groups of their own", async () => {
    await queue.enqueue(...times(3, () => ({ priority: 5, type: "other" })));
    await abandon(70);
    await queue.enqueue(...times(4, () => ({})));
    expect(await batches()).toEqual([
      [32, 1],
      [32, 1],
      [6, 1],
      [4, 0],
    ]);
  });

  test("are not claimed together with older jobs", async () => {
    await queue.enqueue(...times(4, () => ({})));
    const id = await queue.enqueueOne();
    const claimed = await queue.claim({ leaseSeconds: -1 });
    await queue.settle(
      claimed.filter((job) => job.id !== id),
      { kind: "release" },
    );
    await db.run(reapLeases({ limit: 10 }));
    await makeReady();
    expect(await batches()).toEqual([
      [4, 0],
      [1, 1],
    ]);
  });

  test("are not claimed together with jobs of a higher or lower priority", async () => {
    await abandon(2, { priority: 1 });
    await queue.enqueue(...times(4, () => ({ priority: 9 })), { priority: 0 });
    expect(await batches()).toEqual([
      [4, 0],
      [2, 1],
      [1, 0],
    ]);
  });

  test("stay isolated when they are released", async () => {
    await abandon(2);
    await queue.settle(await queue.claim(), { kind: "release" });
    await queue.enqueue({}, {});
    expect(await batches()).toEqual([
      [2, 1],
      [2, 0],
    ]);
  });

  test("are left alone by a claim that asks for no isolated jobs", async () => {
    await abandon(5);
    await queue.enqueue(...times(3, () => ({})));
    expect(await batches({ takeIsolated: false })).toEqual([[3, 0]]);
    expect(await batches()).toEqual([[5, 1]]);
  });

  test("are leased one group at a time, while the queue's other jobs are claimed as usual", async () => {
    await abandon(64);
    await queue.enqueue(...times(10, () => ({})));
    const claims = await Promise.all(times(6, () => queue.claimBatch({ limit: 100 })));
    const sizes = claims
      .map(({ jobs }) => [jobs.length, jobs[0]?.abandonments])
      .filter(([size]) => size !== 0);
    expect(sizes.filter(([, abandonments]) => abandonments === 1)).toEqual([[32, 1]]);
    expect(sizes.filter(([, abandonments]) => abandonments === 0)).toEqual([[10, 0]]);
  });

  test("can be claimed when the lease of the group before them has run out", async () => {
    await abandon(40);
    await queue.claim({ leaseSeconds: -1, limit: 100 });
    expect(await queue.claim({ limit: 100 })).toHaveLength(8);
  });
});

describe("isolated jobs", () => {
  test("are claimed in smaller groups after a second abandonment, and alone after a third", async () => {
    await abandon(8);
    await abandonClaimed({ limit: 10 });
    await abandonClaimed({ limit: 2 }); // two of a group of six
    expect((await batches()).toSorted()).toEqual([
      [1, 3],
      [1, 3],
      [6, 2],
    ]);
  });

  test("are claimed alone when their next attempt is the last", async () => {
    await queue.enqueue(...times(4, (n) => ({ maxAttempts: n < 2 ? 2 : 3 })));
    await abandonClaimed({ limit: 4 });
    expect((await batches()).toSorted()).toEqual([
      [1, 1],
      [1, 1],
      [2, 1],
    ]);
  });

  test("get at least one attempt alone before they die", async () => {
    await abandon(4, { maxAttempts: 3 });
    const group = await abandonClaimed({ limit: 10 });
    expect(group.map((job) => job.attempt)).toEqual([2, 2, 2, 2]);
    const alone = await queue.claim({ limit: 10 });
    expect(alone.map((job) => job.attempt)).toEqual([3]);
  });

  test("run together with other jobs again once they are replayed", async () => {
    const [id] = await abandon(1, { maxAttempts: 2 });
    await queue.settle([await queue.claimOne()], { kind: "retry", message: "", retryInSeconds: 0 });
    await db.run(replay("ann", { id: id ?? "" }));
    await queue.enqueue({}, {});
    expect(await batches()).toEqual([[3, 0]]);
  });
});
