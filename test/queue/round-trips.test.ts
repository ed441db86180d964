// Each operation takes a fixed number of round trips to the database, which cost most of a call's time. They are counted
// at a proxy that speaks Neon's protocol to Neon's own driver.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { claimResponse } from "../../src/contract/work.ts";
import { claim } from "../../src/core/sql/index.ts";
import { createDatabase } from "../../src/edge/database/create-database.ts";
import { isolateStateFor } from "../../src/edge/isolate-state.ts";
import { createNeonTransport } from "../../src/edge/neon/neon-transport.ts";
import { parseSettings } from "../../src/edge/settings/env.ts";
import { definePulledJob, sluice } from "../../src/index.ts";
import { echo } from "../../src/jobs/examples/echo.ts";
import { type NeonProxy, startNeonProxy } from "../../src/local/neon-proxy.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueueAll } from "../../src/queue/enqueue.ts";
import { settleAttempts } from "../../src/queue/settle.ts";
import { createTestPorts, roomyBudget, type TestPorts } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const adminKey = "sk_the_key_of_the_round_trips";
let proxy: NeonProxy;
let ports: TestPorts;
let env: Record<string, string>;

beforeAll(async () => {
  proxy = await startNeonProxy({ postgresPort: Number(new URL(db.url).port) });
  env = { DATABASE_URL: db.url, SLUICE_NEON_ENDPOINT: proxy.endpoint, SLUICE_ADMIN_KEY: adminKey };
  const settings = await parseSettings(env);
  const isolate = isolateStateFor(settings);
  ports = createTestPorts(
    createDatabase(createNeonTransport(settings), { schema: settings.schema, timeoutMs: 30_000, isolate }),
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
  "a drain of $waiting jobs takes one round trip for each of $batches batches, and one at the end",
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
] as const)("settling jobs $ends takes $trips round trips", async ({ outcome, trips }) => {
  await enqueueAll(ports, jobs(10));
  const request = { queue: "default", types: ["echo"], limit: 10, leaseSeconds: 60 };
  const claimed = await ports.db.run(claim(request));
  const ended = claimed.jobs.map((job) => ({ job, outcome }));
  expect(ended).toHaveLength(10);
  expect(await roundTripsOf(() => settleAttempts(ports, ended))).toBe(trips);
});

describe("over HTTP, on one job", () => {
  const print = definePulledJob("print", { payload: z.object({}) });
  const worker = sluice({ jobs: [print] });
  beforeEach(() => emptyQueue(db.pool));

  /** Counts the round trips before the response. Work that continues after it ends before the next request. */
  async function send(path: string, body: object) {
    const later: Promise<unknown>[] = [];
    const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const before = proxy.requests();
    const response = await worker.fetch(new Request(`https://sluice.test${path}`, init), env, {
      waitUntil: (work) => void later.push(work),
    });
    const trips = proxy.requests() - before;
    await Promise.all(later);
    return { trips, status: response.status, body: await response.json() };
  }

  async function claimJob() {
    await enqueueAll(ports, [{ type: "print", payload: {} }]);
    const { body } = await send("/v1/claims", { worker_id: "w1", types: ["print"], limit: 1 });
    const [job] = claimResponse.parse(body).jobs;
    if (!job) throw new Error("nothing was claimed");
    return job;
  }

  async function buryJob(): Promise<string> {
    const { job_id, lease } = await claimJob();
    await send(`/v1/jobs/${job_id}/fail`, { lease, error: "jam", fatal: true });
    return job_id;
  }

  test.each([
    { verb: "complete", fields: { output: { sheets: 2 } }, status: "completed" },
    { verb: "complete", fields: {}, status: "completed" },
    { verb: "fail", fields: { error: "jam" }, status: "pending" },
    { verb: "fail", fields: { error: "jam", fatal: true }, status: "dead" },
    { verb: "extend", fields: { lease_seconds: 600 }, status: "processing" },
    { verb: "release", fields: {}, status: "pending" },
  ])("$verb ($fields) is one round trip", async ({ verb, fields, status }) => {
    const { job_id, lease } = await claimJob();
    const answer = await send(`/v1/jobs/${job_id}/${verb}`, { lease, ...fields });
    expect(answer).toMatchObject({ trips: 1, status: 200, body: { job_id, status } });
  });

  test("a claim is one round trip. The first of a queue takes one more, for the live workers", async () => {
    const request = { worker_id: "w1", queue: "another", types: ["print"] };
    expect(await send("/v1/claims", request)).toMatchObject({ trips: 2, status: 200 });
    expect(await send("/v1/claims", request)).toMatchObject({ trips: 1, status: 200 });
  });

  test("a worker's heartbeat is one round trip, and a claim after it takes no other", async () => {
    expect(await send("/v1/workers", { worker_id: "w1", queues: ["mail", "print"] })).toMatchObject({
      trips: 1,
      status: 200,
    });
    for (const queue of ["mail", "print"])
      expect(await send("/v1/claims", { worker_id: "w1", queue, types: ["print"] })).toMatchObject({
        trips: 1,
      });
  });

  test("a cancel is one round trip", async () => {
    const [job] = await enqueueAll(ports, [{ type: "print", payload: {} }]);
    const answer = await send(`/v1/jobs/${job?.id}/cancel`, {});
    expect(answer).toMatchObject({ trips: 1, status: 200, body: { job_id: job?.id, status: "cancelled" } });
  });

  test("a replay is one round trip, and with a new payload two: one reads the job's type", async () => {
    const ids = [await buryJob(), await buryJob()];
    const path = (id = "") => `/v1/admin/dlq/${id}/replay`;
    expect(await send(path(ids[0]), {})).toMatchObject({
      trips: 1,
      status: 200,
      body: { status: "pending" },
    });
    expect(await send(path(ids[1]), { payload: {} })).toMatchObject({ trips: 2, status: 200 });
  });

  test("a discard is one round trip", async () => {
    const answer = await send(`/v1/admin/dlq/${await buryJob()}/discard`, {});
    expect(answer).toMatchObject({ trips: 1, status: 200, body: { status: "discarded" } });
  });

  test.each([
    { verb: "complete", fields: {}, type: "already_settled" },
    { verb: "fail", fields: { error: "jam" }, type: "lease_lost" },
    { verb: "extend", fields: { lease_seconds: 600 }, type: "lease_lost" },
    { verb: "cancel", fields: {}, type: "conflict" },
    { verb: "cancel", fields: { running: true }, type: "conflict" },
  ])("a $verb of a completed job is refused in one round trip", async ({ verb, fields, type }) => {
    const { job_id, lease } = await claimJob();
    await send(`/v1/jobs/${job_id}/complete`, { lease });
    const body = verb === "cancel" ? fields : { lease, ...fields };
    const answer = await send(`/v1/jobs/${job_id}/${verb}`, body);
    expect(answer).toMatchObject({ trips: 1, status: 409, body: { type: `urn:sluice:problem:${type}` } });
  });

  test("a job that does not exist takes one round trip, and an invalid id takes none", async () => {
    const { lease } = await claimJob();
    const unknown = "/v1/jobs/01900000-0000-7000-8000-000000000000";
    expect(await send(`${unknown}/complete`, { lease })).toMatchObject({ trips: 1, status: 404 });
    expect(await send(`${unknown}/cancel`, {})).toMatchObject({ trips: 1, status: 404 });
    expect(await send("/v1/jobs/none/cancel", {})).toMatchObject({ trips: 0, status: 404 });
  });

  test("many settlements are one round trip", async () => {
    const jobs = [await claimJob(), await claimJob()];
    const settlements = jobs.map(({ job_id, lease }) => ({ job_id, lease, outcome: "complete" }));
    expect(await send("/v1/settlements", { settlements })).toMatchObject({ trips: 1, status: 200 });
  });
});
