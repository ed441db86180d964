// The numbers of a queue: its books by priority, its longest wait, its keys with the most waiting jobs, and its blocked keys.
import { beforeEach, expect, test } from "vitest";
import { pause, queueNumbers } from "../../src/core/sql/index.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

test("a queue that never had a job has nothing", async () => {
  expect(await db.run(queueNumbers("default"))).toEqual({
    ...{ priorities: [], oldestDueSeconds: null, pausedSince: null, blockedKeys: 0, policy: null },
    keys: { looked: 0, top: [] },
  });
});

test("jobs are counted by priority, whatever their type, and not those of other queues", async () => {
  await queue.enqueue(
    ...times(3, (n) => ({ type: `t${n}`, priority: 9 })),
    ...times(2, () => ({ priority: 1, delaySeconds: 60 })),
    { priority: 9, queue: "other" },
  );
  await db.run(pause("ann", { queue: "default" }));
  const numbers = await db.run(queueNumbers("default"));
  expect(numbers.priorities).toMatchObject([
    { priority: 1, pending: 2, scheduled: 2, leased: 0 },
    { priority: 9, pending: 3, scheduled: 0, leased: 0 },
  ]);
  expect(numbers.oldestDueSeconds).toBeGreaterThanOrEqual(0);
  expect(numbers.pausedSince).toBeInstanceOf(Date);
});

test.each([
  ["partition", "partitionKey"],
  ["fair", "fairKey"],
] as const)(
  "%s keys are listed by the number of their waiting jobs, with those that run",
  async (kind, field) => {
    const jobs = [..."aaaaabbbc"].map((key) => ({ [field]: key }));
    await queue.enqueue(...jobs);
    await queue.enqueue(...times(4, () => ({})));
    const before = await db.run(queueNumbers("default", { keys: 2 }));
    expect(before.keys.looked).toBe(9);
    expect(before.keys.top).toEqual([
      { kind, key: "a", waiting: 5, running: 0 },
      { kind, key: "b", waiting: 3, running: 0 },
    ]);
    await queue.claim({ limit: 100 });
    const { keys } = await db.run(queueNumbers("default"));
    for (const { key, waiting, running } of keys.top)
      expect(waiting + running).toBe({ a: 5, b: 3, c: 1 }[key]);
  },
);

test("only so many of the oldest waiting jobs are looked at, and it says how many", async () => {
  await queue.enqueue(...times(50, (n) => ({ partitionKey: `k${n % 5}` })));
  const { keys } = await db.run(queueNumbers("default", { looked: 20 }));
  expect(keys.looked).toBe(20);
  expect(keys.top.map(({ waiting }) => waiting)).toEqual([4, 4, 4, 4, 4]);
});

test("blocked partition keys are counted", async () => {
  await queue.enqueue({ partitionKey: "a" }, { partitionKey: "a" }, { partitionKey: "b" });
  const [first] = await queue.claim({ limit: 1 });
  await queue.settle(first ? [first] : [], { kind: "bury", message: "no" });
  expect((await db.run(queueNumbers("default"))).blockedKeys).toBe(1);
});
