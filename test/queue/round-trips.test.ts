// Round trips are what a queue on the edge pays for: counted where they arrive, at Neon's protocol, by its own driver.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type NeonProxy, startNeonProxy } from "../../infra/local/neon-proxy.ts";
import { claim } from "../../src/core/sql/index.ts";
import { isolateStateFor } from "../../src/edge/isolate-state.ts";
import { createNeonDatabase } from "../../src/edge/neon/neon-database.ts";
import { parseSettings } from "../../src/edge/settings/env.ts";
import { echo } from "../../src/jobs/examples/echo.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueueAll } from "../../src/queue/enqueue.ts";
import { settleAttempts } from "../../src/queue/settle.ts";
import { createTestPorts, roomyBudget, type TestPorts } from "../support/ports.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
let proxy: NeonProxy;
let ports: TestPorts;

beforeAll(async () => {
  proxy = await startNeonProxy({ postgresPort: Number(new URL(db.url).port) });
  const settings = await parseSettings({
    DATABASE_URL: db.url,
    SLUICE_NEON_ENDPOINT: proxy.endpoint,
    SLUICE_ADMIN_KEY: "sk_the_key_of_the_round_trips",
  });
  ports = createTestPorts(
    createNeonDatabase(settings, { timeoutMs: 30_000, isolate: isolateStateFor(settings) }),
    [echo],
  );
});
afterAll(() => proxy.close());

async function roundTripsOf(work: () => Promise<unknown>): Promise<number> {
  const before = proxy.requests();
  await work();
  return proxy.requests() - before;
}
const jobs = (count: number) => Array.from({ length: count }, (_, n) => ({ type: "echo", payload: { n } }));

test.each([1, 100, 10_000])("an enqueue of %i jobs is one round trip", async (count) => {
  expect(await roundTripsOf(() => enqueueAll(ports, jobs(count)))).toBe(1);
  await db.pool.query("truncate sluice.ready");
});

test.each([
  { waiting: 1, batches: 1 },
  { waiting: 100, batches: 1 },
  { waiting: 250, batches: 3 },
])(
  "$waiting waiting jobs are drained in $batches batches of one round trip each, and one at the end",
  async ({ waiting, batches }) => {
    await enqueueAll(ports, jobs(waiting));
    const trips = await roundTripsOf(async () => {
      expect(await drainQueue(ports, { queue: "default", budget: roomyBudget })).toMatchObject({
        completed: waiting,
      });
    });
    expect(trips).toBe(batches + 1);
  },
);

test.each([
  { ends: "that all completed", outcome: { kind: "complete", output: null }, trips: 1 },
  { ends: "of which some failed", outcome: { kind: "retry", message: "jam" }, trips: 2 },
] as const)("jobs $ends are settled in round trips: $trips", async ({ outcome, trips }) => {
  await enqueueAll(ports, jobs(10));
  const request = { queue: "default", types: ["echo"], limit: 10, leaseSeconds: 60 };
  const claimed = await ports.db.run(claim(request));
  const ended = claimed.jobs.map((job) => ({ job, outcome }));
  expect(ended).toHaveLength(10);
  expect(await roundTripsOf(() => settleAttempts(ports, ended))).toBe(trips);
});
