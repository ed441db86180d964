// GET /v1/stats: the numbers behind the dashboard.
import { afterEach, expect, test } from "vitest";
import * as z from "zod";
import { statsResponse } from "../../src/contract/stats.ts";
import { defineJob, FatalError } from "../../src/index.ts";
import { adminCallsOf, refusal } from "./admin-calls.ts";
import { useDeployment } from "./deployment.ts";

const deployment = useDeployment([
  defineJob("order", {
    payload: z.object({ passes: z.boolean() }),
    timeoutSeconds: 10,
    run: ({ passes }) => {
      if (!passes) throw new FatalError("not this one");
    },
  }),
]);
const { enqueueMany, fire } = deployment;
const { ask, send } = adminCallsOf(deployment);
afterEach(() => deployment.quiet());

async function bury(count: number): Promise<void> {
  await enqueueMany(
    "order",
    Array.from({ length: count }, () => ({ passes: false })),
    { queue: "default" },
  );
  await fire();
}

test("stats have the books by queue and type, the oldest waiting jobs and the last rounds", async () => {
  await bury(2);
  await enqueueMany("order", [{ passes: true }], { queue: "rush" });
  const stats = await ask("GET /v1/stats", statsResponse);
  expect(stats.totals).toMatchObject({ enqueued: 3, dead: 2, pending: 1 });
  expect(stats.books).toMatchObject([
    { queue: "default", type: "order", books: { enqueued: 2, dead: 2 } },
    { queue: "rush", type: "order", books: { enqueued: 1, pending: 1 } },
  ]);
  expect(stats.rounds).toMatchObject([{ kind: "drain", queue: "default", claimed: 2, reason: "empty" }]);
  expect(stats.oldest_due_seconds).toBeGreaterThan(0);
  const sum = (entry: "enqueued" | "failed") =>
    stats.minutes.reduce((total, minute) => total + minute[entry], 0);
  expect([sum("enqueued"), sum("failed")]).toEqual([3, 2]);
});

test("stats have no history unless the request names a range", async () => {
  expect(await ask("GET /v1/stats", statsResponse)).not.toHaveProperty("history");
});

test.each([
  ["30m", 30, 1],
  ["3h", 36, 5],
  ["24h", 48, 30],
])(
  "the history of %s has %i buckets of %i minutes for all jobs and for each queue",
  async (range, buckets, minutes) => {
    await bury(2);
    await enqueueMany("order", [{ passes: true }], { queue: "rush" });
    const { history } = await ask(`GET /v1/stats?range=${range}`, statsResponse);
    expect(history).toMatchObject({ range, minutes, gaps: expect.any(Array), marks: expect.any(Array) });
    expect(history?.starts).toHaveLength(buckets);
    expect(history?.queues.map(({ queue }) => queue)).toEqual(["default", "rush"]);
    const sum = (series: (number | null)[] | undefined) =>
      series?.reduce<number>((total, value) => total + (value ?? 0), 0);
    expect(sum(history?.total.enqueued)).toBe(3);
    expect(sum(history?.total.died)).toBe(2);
    expect(sum(history?.queues[0]?.died)).toBe(2);
    expect(history?.total.due.at(-1)).toBe(1);
    for (const series of Object.values(history?.total ?? {})) expect(series).toHaveLength(buckets);
  },
);

test("another range, or another parameter, is a 400 that names it", async () => {
  expect(await refusal(await send("GET /v1/stats?range=1h"))).toEqual({ status: 400, paths: ["range"] });
  expect(await refusal(await send("GET /v1/stats?rnage=3h"))).toMatchObject({ status: 400 });
});
