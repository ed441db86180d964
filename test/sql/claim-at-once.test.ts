// Concurrent claims: each job is claimed once, and no claim takes a lower priority while a higher one is free.
import { beforeEach, describe, expect, test } from "vitest";
import { type PlanNode, watchStatements } from "../support/explain.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const claimers = 16;
const jobs = 10_000;

describe.each([["one type", ["echo"]] as const, ["four types", ["a", "b", "c", "d"]] as const])(
  "16 concurrent claimers of 10,000 jobs of %s",
  (_, types) => {
    test("claim each job once, highest priority first, and stop only when all are claimed", {
      timeout: 60_000,
    }, async () => {
      await queue.enqueue(
        ...times(jobs, (n) => ({ priority: n % 10, type: types[(n >> 2) % types.length] ?? "echo" })),
      );
      const sequences = await Promise.all(times(claimers, claimAll));
      const all = sequences.flat();
      expect(all).toHaveLength(jobs);
      expect(new Set(all.map((job) => job.id)).size).toBe(jobs);
      for (const sequence of sequences) {
        const priorities = sequence.map((job) => job.priority);
        expect(priorities).toEqual(priorities.toSorted((a, b) => b - a));
      }
    });

    /** Claims as a drain does: again while there is more. */
    async function claimAll() {
      const claimed = [];
      for (;;) {
        const { jobs, hasMore } = await queue.claimBatch({ types, limit: 50 });
        claimed.push(...jobs);
        if (!hasMore) return claimed;
      }
    }
  },
);

test("each claim has its own lease key", async () => {
  await queue.enqueue(...times(640, () => ({})));
  const claims = await Promise.all(times(64, () => queue.claim({ limit: 10 })));
  const keys = claims.map((batch) => new Set(batch.map((job) => job.leaseKey)));
  expect(keys.every((batch) => batch.size === 1)).toBe(true);
  expect(new Set(keys.flatMap((batch) => [...batch])).size).toBe(64);
});

test("jobs of a claim that is rolled back are still the oldest, and the next claim takes them", async () => {
  const ids = (await queue.enqueue(...times(300, () => ({})))).map((job) => job.id);
  await inSession(db.pool, async (other) => {
    await other.query("begin");
    await other.query("select sluice.claim('default', '{echo}', 100, 60)");
    const beside = await queue.claim({ limit: 50 });
    await other.query("rollback");
    expect(beside.map((job) => job.id)).toEqual(ids.slice(100, 150));
  });
  expect((await queue.claim({ limit: 100 })).map((job) => job.id)).toEqual(ids.slice(0, 100));
  expect((await queue.claim({ limit: 200 })).map((job) => job.id)).toEqual(ids.slice(150));
});

test("a claim of 100 locks 100 rows, though another claim holds the first 200", async () => {
  await queue.enqueue(...times(400, () => ({})));
  await inSession(db.pool, async (other) => {
    await other.query("begin");
    await other.query("select sluice.claim('default', '{echo}', 200, 60)");
    await inSession(db.pool, async (client) => {
      const watch = await watchStatements(client);
      await client.query("select sluice.claim('default', '{echo}', 100, 60)");
      const lockedRows = watch.take().flatMap(({ plan }) => rowsAskedFor(plan));
      expect(lockedRows).toEqual([100, 1]); // the 1: is the oldest row really locked?
    });
  });
});

function rowsAskedFor(node: PlanNode): number[] {
  const below = (node.Plans ?? []).flatMap(rowsAskedFor);
  const [locked] = node.Plans ?? [];
  return node["Node Type"] === "LockRows" && locked ? [locked["Actual Rows"], ...below] : below;
}
