// The Worker in workerd, with the real wrangler.toml, through the Neon-compatible proxy.
import { createExecutionContext, createScheduledController, waitOnExecutionContext } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { neon, neonConfig } from "@neondatabase/serverless";
import { describe, expect, test } from "vitest";
import { enqueueResponse, jobResponse } from "../../src/contract/jobs.ts";
import { problem } from "../../src/contract/problem.ts";
import worker from "../../src/worker.ts";
import { bindings, adminKey as key } from "./deployment.ts";
import { documentedAnswer } from "./documented-answer.ts";

const authorization = `Bearer ${key}`;

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const request = new Request(`https://sluice.example${path}`, init);
  return documentedAnswer(request, await exports.default.fetch(request));
}

function post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return call("/v1/jobs", {
    method: "POST",
    headers: { authorization, "content-type": "application/json", ...headers },
    body: text,
  });
}

async function enqueued(body: object): Promise<string> {
  const response = await post(body);
  expect(response.status).toBe(201);
  return enqueueResponse.parse(await response.json()).job_id;
}

async function look(id: string) {
  const response = await call(`/v1/jobs/${id}`, { headers: { authorization } });
  expect(response.status).toBe(200);
  return jobResponse.parse(await response.json());
}

async function fire(cron: string): Promise<void> {
  const context = createExecutionContext();
  await worker.scheduled(createScheduledController({ cron }), env, context);
  await waitOnExecutionContext(context);
}

const drainCron = "* * * * *";

describe("a job", () => {
  test("is enqueued by a POST and completed by the drain cron", async () => {
    // `sleep` may run for five minutes, so a nudge leaves it to the cron.
    const response = await post({ type: "sleep", payload: { ms: 1 }, tags: ["first"] });
    expect(response.status).toBe(201);
    const made = enqueueResponse.parse(await response.json());
    expect(made).toMatchObject({ status: "pending", type: "sleep", queue: "default", deduplicated: false });
    expect(response.headers.get("location")).toBe(`/v1/jobs/${made.job_id}`);
    expect(await look(made.job_id)).toMatchObject({ status: "pending", attempts: 0, tags: ["first"] });
    await fire(drainCron);
    // The clock may have started a drain too. If that claimed the job first, the cron's drain ended before it.
    const completed = { status: "completed", attempts: 1, output: null };
    await expect.poll(() => look(made.job_id)).toMatchObject(completed);
  });

  test("starts without waiting for the cron: its enqueue nudges a drain", async () => {
    const id = await enqueued({ type: "echo", payload: { hello: "world" } });
    await expect.poll(() => look(id)).toMatchObject({ status: "completed", output: { hello: "world" } });
  });

  test("is completed by a nudge even in a burst of enqueues", async () => {
    const ids = await Promise.all(
      Array.from({ length: 60 }, (_, n) => enqueued({ type: "echo", payload: { n } })),
    );
    await expect
      .poll(async () => (await Promise.all(ids.map(look))).filter((job) => job.status !== "completed"), {
        timeout: 5000,
      })
      .toEqual([]);
  });

  test("exists once for one idempotency key; the same key with another request is refused", async () => {
    const body = { type: "sleep", payload: { ms: 1 }, idempotency_key: crypto.randomUUID() };
    const first = await post(body);
    const again = await post(
      { type: "sleep", payload: { ms: 1 } },
      { "idempotency-key": `"${body.idempotency_key}"` },
    );
    expect([first.status, again.status]).toEqual([201, 200]);
    const { job_id } = enqueueResponse.parse(await first.json());
    expect(enqueueResponse.parse(await again.json())).toMatchObject({ job_id, deduplicated: true });
    const other = await post({ ...body, payload: { ms: 2 } });
    expect(other.status).toBe(422);
    expect(problem.parse(await other.json()).type).toBe("urn:sluice:problem:idempotency_conflict");
  });

  test("of the type fatal is dead at once and keeps its error message", async () => {
    const id = await enqueued({ type: "fatal", payload: { message: "no way" } });
    await expect
      .poll(() => look(id))
      .toMatchObject({ status: "dead", dead_reason: "fatal", error: "no way" });
  });

  test("of the type flaky is retried after a second", async () => {
    const id = await enqueued({ type: "flaky", payload: { fail_times: 1 } });
    await expect.poll(() => look(id)).toMatchObject({ attempts: 1, error: "attempt 1 of 1 that fail" });
    const failed = await look(id);
    const waitMs = new Date(failed.scheduled_at).getTime() - new Date(failed.started_at ?? 0).getTime();
    expect(waitMs).toBeGreaterThanOrEqual(1000);
    expect(waitMs).toBeLessThan(2000);
    const drainAndLook = async () => {
      await fire(drainCron);
      return (await look(id)).status;
    };
    await expect.poll(drainAndLook, { timeout: 10_000, interval: 200 }).toBe("completed");
  });

  test("of a large backlog is drained by one of several invocations, started through SELF", async () => {
    neonConfig.fetchEndpoint = bindings.SLUICE_NEON_ENDPOINT;
    const sql = neon(bindings.DATABASE_URL);
    const payloads = "array(select jsonb_build_object('n', n) from generate_series(1, 1600) as n)";
    await sql.query(`select count(*) from sluice.enqueue_many('echo', ${payloads}, 'large')`);
    await fire(drainCron);
    const drained = async () => {
      const rounds = await sql.query("select completed from sluice.round where queue = 'large'");
      return { rounds: rounds.length, jobs: rounds.reduce((sum, round) => sum + round.completed, 0) };
    };
    // One for every 500 jobs, or more: the clock may come at the same time.
    await expect.poll(drained).toEqual({ rounds: expect.toSatisfy((count) => count >= 4), jobs: 1600 });
  });
});

test("each of the three crons runs; an unknown cron is an error", async () => {
  await fire("*/2 * * * *");
  await fire("1-59/2 * * * *");
  await expect(fire("5 4 * * *")).rejects.toThrow('no round has the cron expression "5 4 * * *"');
});

describe("a request is refused, changes nothing and is told why, with", () => {
  test.each([
    ["no key", {}, 401],
    ["another key", { authorization: "Bearer sk_another_key_of_some_length" }, 401],
    ["another scheme", { authorization: `Basic ${key}` }, 401],
  ])("%s", async (_, headers, status) => {
    const response = await call("/v1/jobs/019a0000-0000-7000-8000-000000000000", { headers });
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(problem.parse(await response.json()).status).toBe(status);
  });

  test.each([
    ["a body that is not JSON", "{", 400, ""],
    ["no type", { payload: {} }, 400, "type"],
    ["a priority out of range", { type: "echo", priority: 10 }, 400, "priority"],
    ["an unknown field", { type: "echo", prority: 1 }, 400, "prority"],
    ["a payload that is no object", { type: "echo", payload: [] }, 400, "payload"],
    ["a payload that does not fit its type", { type: "sleep", payload: { ms: "1" } }, 400, "payload.ms"],
    [
      "two start times",
      { type: "echo", delay_seconds: 5, scheduled_at: "2030-01-01T00:00:00Z" },
      400,
      "scheduled_at",
    ],
    ["both keys", { type: "echo", partition_key: "a", fair_key: "b" }, 400, "fair_key"],
    ["an empty fair key", { type: "echo", fair_key: "" }, 400, "fair_key"],
    ["a type that is not registered", { type: "nobody" }, 403, undefined],
    ["a payload past its limit", { type: "echo", payload: { a: "x".repeat(65_536) } }, 413, undefined],
    ["a body past its limit", { type: "echo", payload: { a: "x".repeat(100_000) } }, 413, undefined],
  ])("%s", async (_, body, status, path) => {
    const response = await post(body);
    expect(response.status).toBe(status);
    const document = problem.parse(await response.json());
    expect(document.status).toBe(status);
    if (path) expect(document.errors?.[0]?.path).toBe(path);
  });

  test("another content type", async () => {
    expect((await post("type=echo", { "content-type": "application/x-www-form-urlencoded" })).status).toBe(
      415,
    );
  });

  test.each(["/v1/jobs/not-an-id", "/v1/jobs/019a0000-0000-7000-8000-000000000000", "/nowhere"])(
    "%s is a 404 problem document",
    async (path) => {
      const response = await call(path, { headers: { authorization } });
      expect(response.status).toBe(404);
      expect(problem.parse(await response.json()).title).toBe("Not found");
    },
  );
});

describe("failures", () => {
  const context = () => createExecutionContext();

  test("invalid settings give one clear message on every request, without their values", async () => {
    const bad = { ...env, DATABASE_URL: "oracle://secret" };
    const response = await worker.fetch(new Request("https://sluice.example/health"), bad, context());
    expect(response.status).toBe(500);
    const { detail } = problem.parse(await response.json());
    expect(detail).toBe("invalid settings: DATABASE_URL must be a postgresql:// connection string");
  });

  test("an unreachable database is a 503 with Retry-After, and /health shows it", async () => {
    const gone = { ...env, DATABASE_URL: "postgresql://sluice:sluice@127.0.0.1/no_such_database" };
    const request = (path: string) =>
      new Request(`https://sluice.example${path}`, { headers: { authorization } });
    const job = await worker.fetch(request("/v1/jobs/019a0000-0000-7000-8000-000000000000"), gone, context());
    expect(job.status).toBe(503);
    expect(job.headers.get("retry-after")).toBe("5");
    const health = await worker.fetch(request("/health"), gone, context());
    expect(health.status).toBe(503);
    expect(await health.json()).toMatchObject({ status: "unavailable", checks: { database: "unavailable" } });
  });

  test("a database that never answers is a 503 in less than 5 s", async () => {
    const { RECEIVER_URL } = env as unknown as { RECEIVER_URL: string };
    const hanging = { ...env, SLUICE_NEON_ENDPOINT: `${RECEIVER_URL}/hang` };
    const startedMs = Date.now();
    const request = new Request("https://sluice.example/v1/jobs/019a0000-0000-7000-8000-000000000000", {
      headers: { authorization },
    });
    expect((await worker.fetch(request, hanging, context())).status).toBe(503);
    expect(Date.now() - startedMs).toBeLessThan(5000);
  });

  test("pages of other origins get no CORS headers, because a key in a page is public", async () => {
    const headers = {
      authorization,
      origin: "https://page.example",
      "access-control-request-method": "POST",
    };
    for (const method of ["OPTIONS", "GET"]) {
      const response = await call("/v1/jobs", { method, headers });
      expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
      expect(response.ok).toBe(method === "GET");
    }
  });

  test("/health needs no key, and one isolate serves two requests in a row", async () => {
    for (let n = 0; n < 2; n++) {
      const response = await call("/health");
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ status: "ok", checks: { database: "ok" } });
    }
  });
});
