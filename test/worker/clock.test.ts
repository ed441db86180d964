// The clock in workerd: the deployed Worker and its Durable Object. First with real alarms and no cron at all. Then with the
// crons of simulated hours and a database that may sleep: every statement is counted where it leaves the Worker. Whole days
// are counted at the proxy, in test/queue/asleep.test.ts.
import {
  createExecutionContext,
  createScheduledController,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
  waitOnExecutionContext,
} from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { neon, neonConfig } from "@neondatabase/serverless";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { deadRunResponse } from "../../src/contract/dead-letters.ts";
import { flowMadeResponse } from "../../src/contract/flows.ts";
import { enqueueResponse, jobResponse } from "../../src/contract/jobs.ts";
import { claimResponse } from "../../src/contract/work.ts";
import { type ClockState, nextLookMs } from "../../src/core/policy/clock.ts";
import deployed from "../../src/worker.ts";
import { emptyQueue } from "../support/empty-queue.ts";
import { asOwner } from "../support/worker-role.ts";
import { adminKey, bindings, crons } from "./deployment.ts";

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
/** Neither the database nor the clock knows of a job any more. */
async function forgetAll(): Promise<void> {
  await query(emptyQueue);
  await runInDurableObject(stub(), (_, { storage }) => storage.kv.delete("state"));
  await evictDurableObject(stub());
}
const msBetween = (from: string | null, to: string | null) => Date.parse(to ?? "") - Date.parse(from ?? "");
/** A second. On a busy machine more: as much as 20 jobs wait for their start that have no delay. */
const mayBeLateMs = async () => {
  const job = await completed(await enqueue({ type: "echo" }));
  return Math.max(1000, 20 * msBetween(job.created_at, job.started_at));
};

describe("without any cron", () => {
  test("a delayed job starts within a second of its time", async () => {
    const job = await completed(await enqueue({ type: "echo", delay_seconds: 2 }));
    const lateMs = msBetween(job.created_at, job.started_at) - 2000;
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThan(await mayBeLateMs());
  });

  test("a job of another queue starts within a second of the end of the job that it waits for", async () => {
    const flow = await post("/v1/flows", {
      jobs: [
        { ref: "first", type: "sleep", payload: { ms: 700 } },
        { ref: "second", type: "echo", queue: "elsewhere", after: ["first"] },
      ],
    });
    const { jobs } = flowMadeResponse.parse(await flow.json());
    const second = await completed(jobs[1]?.job_id ?? "");
    const first = await look(jobs[0]?.job_id ?? "");
    expect(msBetween(first.completed_at, second.started_at)).toBeLessThan(1000);
  });

  test("a debounced job starts within a second of the end of its quiet time", async () => {
    const debounce = { key: "k", mode: "last", seconds: 2 };
    await enqueue({ type: "echo", debounce });
    const job = await completed(await enqueue({ type: "echo", debounce }));
    const lateMs = msBetween(job.created_at, job.started_at) - 2000;
    expect(lateMs).toBeGreaterThanOrEqual(-20);
    expect(lateMs).toBeLessThan(await mayBeLateMs());
  });

  test("each slot of a schedule with seconds starts within a second of its time", async () => {
    const body = JSON.stringify({ cron: "*/2 * * * * *", type: "echo" });
    const put = await worker.fetch("https://sluice.example/v1/schedules/often", {
      ...{ method: "PUT", headers, body },
    });
    expect(put.status).toBe(201);
    const slots = () =>
      query(`select extract(epoch from started_at - (schedule ->> 'slot')::timestamptz)::float8 as late
             from sluice.jobs where schedule is not null and started_at is not null`);
    await expect.poll(async () => (await slots()).length, { timeout: 10_000 }).toBeGreaterThanOrEqual(3);
    await worker.fetch("https://sluice.example/v1/schedules/often", { method: "DELETE", headers });
    const mayBeLate = (await mayBeLateMs()) / 1000;
    for (const { late } of await slots()) expect(late).toBeLessThan(mayBeLate);
  });

  test("each retry starts within a second of its time", async () => {
    const job = await completed(await enqueue({ type: "flaky", payload: { fail_times: 2 } }));
    expect(job.attempts).toBe(3);
    const lateMs = msBetween(job.errors.at(-1)?.at ?? null, job.started_at) - 1000;
    expect(lateMs).toBeGreaterThanOrEqual(-20);
    expect(lateMs).toBeLessThan(await mayBeLateMs());
  });

  test("a job whose type may outlast a nudge starts within a second", async () => {
    const job = await completed(await enqueue({ type: "sleep", payload: { ms: 0 } }));
    expect(msBetween(job.created_at, job.started_at)).toBeLessThan(await mayBeLateMs());
  });

  test("a run over dead letters goes on at its rate", async () => {
    const ids = await Promise.all(
      [1, 2, 3, 4].map(() => enqueue({ type: "fatal", payload: { message: "no" } })),
    );
    for (const id of ids)
      await expect.poll(async () => (await look(id)).status, { timeout: 10_000 }).toBe("dead");
    const body = { action: "replay", type: "fatal", per_minute: 60 };
    const { run_id } = deadRunResponse.parse(await (await post("/v1/admin/dlq-runs", body)).json());
    const url = `https://sluice.example/v1/admin/dlq-runs/${run_id}`;
    const run = async () => deadRunResponse.parse(await (await worker.fetch(url, { headers })).json());
    await expect.poll(async () => (await run()).state, { timeout: 10_000 }).toBe("done");
    const { done, started_at, ended_at } = await run();
    expect(done).toBe(4);
    // The steps are at 0 and 2 s: each takes the jobs of that time and of one second more.
    expect(msBetween(started_at, ended_at)).toBeGreaterThan(1500);
    expect(msBetween(started_at, ended_at)).toBeLessThan(4000 + (await mayBeLateMs()));
  });

  test("a delayed job that was enqueued by SQL is on time after a nudge", async () => {
    const [row] = await query("select sluice.enqueue('echo', '{}', delay_seconds => 2) as id");
    expect((await post("/v1/nudge", {})).status).toBe(202);
    const job = await completed(String(row?.id));
    expect(msBetween(job.created_at, job.started_at)).toBeLessThan(2000 + (await mayBeLateMs()));
  });

  test("a job that was enqueued by SQL starts at once after a nudge through a binding", async () => {
    const [row] = await query("select sluice.enqueue('echo', '{}') as id");
    const { SluiceProducer } = exports as unknown as { SluiceProducer: { nudge(): Promise<void> } };
    await SluiceProducer.nudge();
    const job = await completed(String(row?.id));
    expect(msBetween(job.created_at, job.started_at)).toBeLessThan(await mayBeLateMs());
  });

  test("a drain runs on time what a puller has put off, and at once what it has given back", async () => {
    await query("select sluice.enqueue('echo', '{}'), sluice.enqueue('echo', '{}')");
    const claimed = claimResponse.parse(
      await (await post("/v1/claims", { worker_id: "w", types: ["echo"], limit: 2 })).json(),
    );
    const [late, back] = claimed.jobs;
    if (!late || !back) throw new Error("the claim has found no jobs");
    const settle = (job: typeof late, verb: string, body: object) =>
      post(`/v1/jobs/${job.job_id}/${verb}`, { lease: job.lease, ...body });
    expect((await settle(late, "fail", { error: "no", retry_in_seconds: 2 })).status).toBe(200);
    const retried = await completed(late.job_id);
    const lateMs = msBetween(retried.errors.at(-1)?.at ?? null, retried.started_at) - 2000;
    expect(lateMs).toBeGreaterThanOrEqual(-20);
    expect(lateMs).toBeLessThan(await mayBeLateMs());
    expect((await settle(back, "release", {})).status).toBe(200);
    await completed(back.job_id);
  });

  test.each([
    ["by itself", (id: string, lease: string) => post(`/v1/jobs/${id}/complete`, { lease })],
    [
      "in a list",
      (id: string, lease: string) =>
        post("/v1/settlements", { settlements: [{ job_id: id, lease, outcome: "complete" }] }),
    ],
    [
      "badly",
      (id: string, lease: string) => post(`/v1/jobs/${id}/fail`, { lease, error: "no", fatal: true }),
    ],
  ])(
    "a job of another queue starts soon after a puller has ended what it waits for: %s",
    async (_, settle) => {
      const flow = [
        { ref: "first", type: "echo" },
        { ref: "second", type: "echo", queue: "elsewhere", after: ["first"], on_blocker_dead: "run" },
      ];
      const [row] = await query("select sluice.enqueue_flow($1) -> 'jobs' as jobs", [JSON.stringify(flow)]);
      const claimed = claimResponse.parse(
        await (await post("/v1/claims", { worker_id: "w", types: ["echo"] })).json(),
      );
      const [first] = claimed.jobs;
      if (!first) throw new Error("the claim has found no job");
      const [{ now }] = (await query("select clock_timestamp() as now")) as [{ now: Date }];
      expect((await settle(first.job_id, first.lease)).status).toBe(200);
      const second = await completed(row?.jobs[1].id);
      expect(msBetween(now.toISOString(), second.started_at)).toBeLessThan(await mayBeLateMs());
    },
  );

  test("a clock that was evicted keeps its time", async () => {
    const id = await enqueue({ type: "echo", delay_seconds: 2 });
    await expect.poll(async () => (await stored()).dueAtMs).not.toBeNull();
    await evictDurableObject(stub());
    const { scheduled_at, started_at } = await completed(id);
    expect(msBetween(scheduled_at, started_at)).toBeLessThan(await mayBeLateMs());
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

describe.each([
  ["answers nothing", () => new Promise<never>(() => {})],
  ["fails at once", () => Promise.reject(new Error("the Durable Object was reset"))],
])("with a clock that %s, everything works by cron:", (_clock, broken) => {
  const methods = ["tell", "noteLook", "tick", "read", "keepMetrics"];
  const calls = Object.fromEntries(methods.map((method) => [method, broken]));
  // SELF leads to a Worker whose clock works.
  const { SELF: _, ...own } = env as unknown as Record<string, unknown>;
  const settings = { ...own, CLOCK: { getByName: () => calls }, SLUICE_MAX_SLEEP_MINUTES: "240" };
  const run = async <T>(work: (context: ExecutionContext) => Promise<T>): Promise<T> => {
    const context = createExecutionContext();
    const result = await work(context);
    await waitOnExecutionContext(context);
    return result;
  };
  const call = (path: string, init: RequestInit = {}) =>
    run(async (context) => {
      const request = new Request(`https://sluice.example${path}`, { headers, ...init });
      return (await deployed.fetch(request as never, settings, context as never)) as Response;
    });
  const fire = (cron: string) =>
    run((context) =>
      deployed.scheduled(createScheduledController({ cron }) as never, settings, context as never),
    );

  beforeAll(forgetAll);

  test("a job runs at once, a delayed one with the next drain round, and /health is 200", async () => {
    const add = async (job: object) => {
      const response = await call("/v1/jobs", { method: "POST", body: JSON.stringify(job) });
      expect(response.status).toBe(201);
      return enqueueResponse.parse(await response.json()).job_id;
    };
    expect((await look(await add({ type: "echo" }))).status).toBe("completed");
    const id = await add({ type: "echo", delay_seconds: 1 });
    await query("select pg_sleep(1.1)");
    expect((await look(id)).status).toBe("pending");
    for (const cron of Object.values(crons)) await fire(cron);
    expect((await look(id)).status).toBe("completed");
    const health = await call("/health");
    expect([health.status, await health.json()]).toMatchObject([
      200,
      { checks: { clock: { status: "unreachable" }, database: "ok" } },
    ]);
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
  onTestFinished(() => fetched.mockRestore());
  const jobs = Array.from({ length: 5 }, () => ({ type: "echo", queue: "many", delay_seconds: 1 }));
  const answers = await Promise.all(Array.from({ length: 40 }, () => post("/v1/jobs/batch", { jobs })));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  const count = "select count(*)::int as n from sluice.jobs where queue = 'many' and status = 'completed'";
  await expect.poll(async () => (await query(count))[0]?.n, { timeout: 20_000 }).toBe(200);
  const looks = fetched.mock.calls.filter(([, init]) => String(init?.body).includes(".backlog("));
  expect(looks.length).toBeGreaterThan(0);
  expect(looks.length).toBeLessThan(20);
});

test("what a reap round leaves of leases that ran out is done seconds later, without another cron", async () => {
  await query(
    "select count(*) from sluice.enqueue_many('echo', array_fill('{}'::jsonb, array[15000]), 'left')",
  );
  for (let n = 0; n < 15; n++) await query("select count(*) from sluice.claim('left', '{echo}', 1000, 60)");
  await query("select sluice.pause('me', 'queue', 'left')"); // so that nothing else happens to them
  await query("update sluice.lease set deadline = now() - interval '1 s'"); // at once, before the clock looks for them
  const leases = async () =>
    Number((await query("select count(*)::int as n from sluice.lease where cardinality(ids) = 1000"))[0]?.n);
  const before = await leases();
  const context = createExecutionContext();
  await deployed.scheduled(createScheduledController({ cron: crons.reap }) as never, env, context as never);
  await waitOnExecutionContext(context);
  expect([before, await leases()]).toEqual([15, 3]);
  await expect.poll(leases, { timeout: 10_000 }).toBe(0);
  await expect.poll(async () => (await stored()).isWaking).toBe(false);
});

describe("a database that may sleep", () => {
  const minute = 60_000;
  const settings = { ...env, SLUICE_MAX_SLEEP_MINUTES: "240" };
  const startedMs = Date.now();
  const touchedMs: number[] = [];

  beforeAll(async () => {
    await forgetAll();
    vi.useFakeTimers({ toFake: ["Date"], now: startedMs });
    const send = globalThis.fetch;
    vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => {
      if (String(input).startsWith(bindings.SLUICE_NEON_ENDPOINT)) touchedMs.push(Date.now());
      return send(input, init);
    });
  });
  afterAll(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  const nextLook = async () => {
    const state = await stored();
    return state && !state.isWaking ? nextLookMs(state) : null;
  };

  async function fire(cron: string): Promise<void> {
    const context = createExecutionContext();
    await deployed.scheduled(createScheduledController({ cron }) as never, settings, context as never);
    await waitOnExecutionContext(context);
  }

  async function call(path: string, init: RequestInit = {}): Promise<Response> {
    const context = createExecutionContext();
    const request = new Request(`https://sluice.example${path}`, { headers, ...init });
    const response = await deployed.fetch(request as never, settings, context as never);
    await waitOnExecutionContext(context);
    return response as Response;
  }

  /** Fires the clock's alarms and the crons up to that time. Alarms follow the real clock, so they are fired by hand. */
  async function passUntil(endMs: number): Promise<void> {
    for (;;) {
      const cronMs = (Math.floor((Date.now() - startedMs) / minute) + 1) * minute + startedMs;
      const lookMs = await nextLook();
      if (Math.min(cronMs, lookMs ?? cronMs) > endMs) return void vi.setSystemTime(endMs);
      if (lookMs !== null && lookMs < cronMs) {
        vi.setSystemTime(Math.max(lookMs, Date.now()));
        await runDurableObjectAlarm(stub());
        continue;
      }
      vi.setSystemTime(cronMs);
      await fire(crons.drain);
      await fire(Math.round((cronMs - startedMs) / minute) % 2 === 0 ? crons.reap : crons.watch);
    }
  }

  test("/health and /metrics do not wake it, and say that it sleeps", async () => {
    await passUntil(Date.now() + 30 * minute);
    touchedMs.length = 0;
    const health = await call("/health");
    expect([health.status, await health.json()]).toEqual([
      200,
      {
        status: "ok",
        checks: {
          database: "asleep",
          drain: "asleep",
          clock: { status: "ok", asleep: true, next_due_at: null },
        },
      },
    ]);
    const metrics = await (await call("/metrics")).text();
    expect(metrics).toContain("\nsluice_database_asleep 1\n");
    expect(metrics).toContain("sluice_pending_jobs");
    expect(touchedMs).toEqual([]);
  });

  test("crons that stop while it sleeps are noticed", async () => {
    vi.setSystemTime(Date.now() + 4 * minute);
    const health = await call("/health");
    expect([health.status, await health.json()]).toMatchObject([503, { checks: { drain: "overdue" } }]);
    await passUntil(Date.now() + minute);
    expect((await call("/health")).status).toBe(200);
  });

  test("an enqueue wakes it, its job runs at once, and it sleeps again after that", async () => {
    const body = JSON.stringify({ type: "echo", payload: { n: 1 } });
    expect((await call("/v1/jobs", { method: "POST", body })).status).toBe(201);
    const [job] = await query("select status from sluice.jobs where type = 'echo'");
    expect(job?.status).toBe("completed");
    expect(await (await call("/health")).json()).toMatchObject({ checks: { clock: { asleep: false } } });
    await passUntil(Date.now() + 10 * minute);
    expect(await (await call("/health")).json()).toMatchObject({ checks: { clock: { asleep: true } } });
  });

  test("a delayed job wakes it at its time", async () => {
    const body = JSON.stringify({ type: "echo", payload: { n: 2 }, delay_seconds: 3600 });
    await call("/v1/jobs", { method: "POST", body });
    await passUntil(Date.now() + 30 * minute);
    const answer = (await (await call("/health")).json()) as { checks: { clock: { next_due_at: string } } };
    expect(answer).toMatchObject({ checks: { clock: { asleep: true } } });
    // The time of Postgres is real, so a later look in simulated time says a later time.
    const leftMs = Date.parse(answer.checks.clock.next_due_at) - Date.now();
    expect(leftMs).toBeGreaterThan(29 * minute);
    expect(leftMs).toBeLessThan(33 * minute);
    touchedMs.length = 0;
    await passUntil(Date.now() + 29 * minute);
    expect(touchedMs).toEqual([]);
    await passUntil(Date.now() + 4 * minute);
    expect(touchedMs.length).toBeGreaterThan(0);
  });
});
