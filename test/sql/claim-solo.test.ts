// A job whose lease ran out may have killed its worker: from then on it is claimed alone (D8).
import { beforeEach, expect, test } from "vitest";
import { reapLeases, replay } from "../../src/core/sql/index.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

/** Jobs that were abandoned once and are ready again. */
async function abandon(count: number, fields = {}): Promise<string[]> {
  const jobs = await queue.enqueue(...times(count, () => fields));
  await queue.claim({ leaseSeconds: -1 });
  await db.run(reapLeases({ limit: 10 }));
  await makeReady();
  return jobs.map((job) => job.id);
}

async function makeReady() {
  await queue.query("update sluice.scheduled set run_at = now() - interval '1 second'");
  await queue.query("select sluice.reset_cursors()");
  await queue.query("select sluice.promote_due(1000, null)");
}

/** The size of each claim and its jobs' strikes, until a claim says that there is no more, or finds none. */
async function batches() {
  const found: [size: number, strikes: number][] = [];
  for (;;) {
    const { jobs, hasMore } = await queue.claimBatch();
    if (jobs.length > 0) found.push([jobs.length, Math.max(...jobs.map((job) => job.strikes))]);
    if (!hasMore) return found;
  }
}

test("abandoned jobs are claimed one by one, before and after the others by age", async () => {
  await queue.enqueue(...times(3, () => ({ priority: 5, type: "other" })));
  await abandon(2);
  await queue.enqueue(...times(4, () => ({})));
  expect(await batches()).toEqual([
    [1, 1],
    [1, 1],
    [4, 0],
  ]);
});

test("an abandoned job that is not the oldest is not claimed together with older ones", async () => {
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

test("an abandoned job of lower priority is not claimed together with better ones, nor forgotten", async () => {
  await abandon(1, { priority: 1 });
  await queue.enqueue(...times(4, () => ({ priority: 9 })), { priority: 0 });
  expect(await batches()).toEqual([
    [4, 0],
    [1, 1],
    [1, 0],
  ]);
});

test("an abandoned job that is released or tried again still runs alone", async () => {
  await abandon(1);
  await queue.settle([await queue.claimOne()], { kind: "release" });
  await queue.enqueue({}, {});
  expect(await batches()).toEqual([
    [1, 1],
    [2, 0],
  ]);
});

test("a job that was replayed runs with the others again", async () => {
  const [id] = await abandon(1, { maxAttempts: 2 });
  await queue.settle([await queue.claimOne()], { kind: "retry", message: "", retryInSeconds: 0 });
  await db.run(replay([id ?? ""]));
  await queue.enqueue({}, {});
  expect(await batches()).toEqual([[3, 0]]);
});
