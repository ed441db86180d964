// The clock in workerd: the deployed Worker, its Durable Object with real alarms, and no cron at all.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { neon, neonConfig } from "@neondatabase/serverless";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { enqueueResponse, jobResponse } from "../../src/contract/jobs.ts";
import type { ClockState } from "../../src/core/policy/clock.ts";
import { emptyQueue } from "../support/empty-queue.ts";
import { asOwner } from "../support/worker-role.ts";
import { adminKey, bindings } from "./deployment.ts";

const query = (text: string, values: unknown[] = []) =>
  neon(asOwner(bindings.DATABASE_URL)).query(text, values);
beforeAll(async () => {
  neonConfig.fetchEndpoint = bindings.SLUICE_NEON_ENDPOINT;
  await query(emptyQueue);
});

const worker = exports.default as unknown as { fetch(url: string, init?: RequestInit): Promise<Response> };
const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
const post = (path: string, body: object) =>
  worker.fetch(`https://sluice.example${path}`, { method: "POST", headers, body: JSON.stringify(body) });
const enqueue = async (job: object) =>
  enqueueResponse.parse(await (await post("/v1/jobs", job)).json()).job_id;
const look = async (id: string) =>
  jobResponse.parse(await (await worker.fetch(`https://sluice.example/v1/jobs/${id}`, { headers })).json());
const completed = async (id: string) => {
  await expect.poll(async () => (await look(id)).status, { timeout: 10_000 }).toBe("completed");
  return look(id);
};
const stub = () => {
  const { host, pathname } = new URL(bindings.DATABASE_URL);
  const { CLOCK } = env as unknown as { CLOCK: { getByName(name: string): DurableObjectStub } };
  return CLOCK.getByName(`${host}${pathname}/sluice`);
};
const stored = () =>
  runInDurableObject(stub(), (_, { storage }) => storage.kv.get("state") as unknown as ClockState);
const msBetween = (from: string | null, to: string | null) => Date.parse(to ?? "") - Date.parse(from ?? "");

describe("without any cron", () => {
  test("a delayed job starts within a second of its time", async () => {
    const job = await completed(await enqueue({ type: "echo", delay_seconds: 2 }));
    const lateMs = msBetween(job.created_at, job.started_at) - 2000;
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThan(1000);
  });

  test("each retry starts within a second of its time", async () => {
    const job = await completed(await enqueue({ type: "flaky", payload: { fail_times: 2 } }));
    expect(job.attempts).toBe(3);
    const lateMs = msBetween(job.errors.at(-1)?.at ?? null, job.started_at) - 1000;
    expect(lateMs).toBeGreaterThanOrEqual(-20);
    expect(lateMs).toBeLessThan(1000);
  });

  test("a job whose type may outlast a nudge starts within a second", async () => {
    const job = await completed(await enqueue({ type: "sleep", payload: { ms: 0 } }));
    expect(msBetween(job.created_at, job.started_at)).toBeLessThan(1000);
  });

  test("a delayed job that was enqueued by SQL is on time after a nudge", async () => {
    const [row] = await query("select sluice.enqueue('echo', '{}', delay_seconds => 2) as id");
    expect((await post("/v1/nudge", {})).status).toBe(202);
    const job = await completed(String(row?.id));
    expect(msBetween(job.created_at, job.started_at)).toBeLessThan(3000);
  });

  test("a clock that was evicted keeps its time", async () => {
    const id = await enqueue({ type: "echo", delay_seconds: 2 });
    await expect.poll(async () => (await stored()).dueAtMs).not.toBeNull();
    await evictDurableObject(stub());
    expect(msBetween((await completed(id)).scheduled_at, (await look(id)).started_at)).toBeLessThan(1000);
  });

  test("the jobs of a process that died come back when their lease runs out", async () => {
    const [row] = await query("select sluice.enqueue('echo', '{}') as id");
    await query("select sluice.claim('default', '{echo}', 1, 3)");
    await runInDurableObject(stub(), (clock) =>
      (clock as unknown as { noteLook(look: object): Promise<void> }).noteLook({
        ...{ msAgo: 0, hasWork: false, dueMs: null, upkeepMs: 3000 },
      }),
    );
    const errors = async () => (await look(String(row?.id))).errors.map(({ message }) => message);
    await expect.poll(errors, { timeout: 6000 }).toEqual(["the lease ran out"]);
  });
});

test("/health and /metrics show the clock, and when the next job is due", async () => {
  await enqueue({ type: "echo", delay_seconds: 600 });
  const health = async () =>
    ((await (await worker.fetch("https://sluice.example/health")).json()) as { checks: { clock: object } })
      .checks.clock;
  await expect
    .poll(health)
    .toEqual({ status: "ok", asleep: false, next_due_at: expect.stringMatching(/^\d{4}-.*Z$/) });
  const text = await (await worker.fetch("https://sluice.example/metrics", { headers })).text();
  expect(text).toContain("\nsluice_clock_reachable 1\n");
  expect(text).toContain("\nsluice_database_asleep 0\n");
  expect(text).toMatch(/\nsluice_next_due_seconds \d/);
});

test("200 delayed jobs at once are completed by a few looks at the database", async () => {
  const fetched = vi.spyOn(globalThis, "fetch");
  const ids = await Promise.all(
    Array.from({ length: 200 }, () => enqueue({ type: "echo", queue: "many", delay_seconds: 1 })),
  );
  const count = "select count(*)::int as n from sluice.jobs where queue = 'many' and status = 'completed'";
  await expect.poll(async () => (await query(count))[0]?.n, { timeout: 8000 }).toBe(ids.length);
  const looks = fetched.mock.calls.filter(([, init]) => String(init?.body).includes(".backlog("));
  fetched.mockRestore();
  expect(looks.length).toBeGreaterThan(0);
  expect(looks.length).toBeLessThan(20);
});
