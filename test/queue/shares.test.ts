// A drain goes on until a queue with keys is empty, whatever its keys, limits and rates are.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import type { NewJob } from "../../src/core/job.ts";
import { defaultFanOut } from "../../src/core/policy/fan-out.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { defineQueue } from "../../src/jobs/define-queue.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { runDrainRound } from "../../src/queue/rounds.ts";
import { createTestPorts, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
const starts = new Map<string, number[]>();
const payload = z.object({ key: z.string().default("") });
const ports = createTestPorts(
  db,
  [
    defineJob("note", {
      payload,
      run: ({ key }) => void starts.set(key, [...(starts.get(key) ?? []), Date.now()]),
    }),
    defineJob("narrow", { payload, concurrency: 3, run: () => {} }),
  ],
  [
    defineQueue("capped", { shares: { concurrency: 4 } }),
    defineQueue("rated", { shares: { rate: { limit: 10, per: "second" } } }),
  ],
);

beforeEach(async () => {
  await emptyQueue(db.pool);
  starts.clear();
});

describe("one drain completes all jobs of a queue", () => {
  const cases: [what: string, count: number, optionsOf: (n: number) => Partial<NewJob>][] = [
    ["with one partition key", 250, () => ({ partitionKey: "a" })],
    ["with 200 partition keys", 500, (n) => ({ partitionKey: `${n % 200}` })],
    [
      "with partition keys and priorities",
      300,
      (n) => ({ partitionKey: `${n % 20}`, priority: 3 + (n % 3) }),
    ],
    ["with one fair key", 250, () => ({ fairKey: "a" })],
    ["with 5 fair keys", 500, (n) => ({ fairKey: `${n % 5}` })],
    ["with 200 fair keys", 500, (n) => ({ fairKey: `${n % 200}` })],
    ["with fair keys of very different lengths", 300, (n) => ({ fairKey: n < 9 ? `${n}` : "a" })],
    ["with a limit for each of 30 fair keys", 300, (n) => ({ queue: "capped", fairKey: `${n % 30}` })],
    ["with partition keys and a limited type", 30, (n) => ({ type: "narrow", partitionKey: `${n % 10}` })],
    ["with fair keys and a limited type", 30, (n) => ({ type: "narrow", fairKey: `${n % 10}` })],
    ["of which some have no key", 300, (n) => [{}, { partitionKey: "a" }, { fairKey: "b" }][n % 3] ?? {}],
  ];

  test.each(cases)("%s", async (_, count, optionsOf) => {
    const jobs = times(count, (n) => ({ type: "note", ...optionsOf(n) }));
    await queue.enqueue(...jobs);
    const report = await drainQueue(ports, { queue: jobs[0]?.queue ?? "default", budget: roomyBudget });
    expect(report).toMatchObject({ completed: count, lost: 0, end: "empty" });
  });
});

test.each([{ partitionKey: "a" }, { fairKey: "a" }, { partitionKey: "a", scheduledAt: new Date() }])(
  "a cron round drains a queue whose jobs all have keys: %j",
  async (options) => {
    await queue.enqueue({ type: "note", ...options });
    expect(await runDrainRound(ports, { plan: "paid", fanOut: defaultFanOut })).toEqual({ drains: 1 });
    expect(await queue.count("jobs where status = 'completed'")).toBe(1);
  },
);

describe("a rate of fair keys", () => {
  test("holds for each key, and a drain waits for the next start", async () => {
    await queue.enqueue(
      ...times(12, (n) => ({
        type: "note",
        queue: "rated",
        fairKey: `${n % 2}`,
        payload: { key: `${n % 2}` },
      })),
    );
    const startedMs = Date.now();
    expect(await drainQueue(ports, { queue: "rated", budget: roomyBudget })).toMatchObject({ completed: 12 });
    expect(Date.now() - startedMs).toBeLessThan(5_000);
    for (const times of starts.values()) {
      expect(times).toHaveLength(6);
      // The database sets the time of the claim. The handler starts a moment later, and never before.
      for (const [index, at] of times.entries()) expect(at - (times[index - 1] ?? 0)).toBeGreaterThan(50);
    }
  });

  test("does not keep a drain longer than it may claim", async () => {
    await queue.enqueue(...times(5, () => ({ type: "note", queue: "rated", fairKey: "a" })));
    const budget = { ...roomyBudget, claimForMs: 150 };
    const report = await drainQueue(ports, { queue: "rated", budget });
    expect(report.completed).toBeGreaterThan(0);
    expect(report.completed).toBeLessThan(5);
  });
});
