// The OpenAPI document describes every route, and answers are as it says.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { Operation } from "../../src/contract/operation.ts";
import { operations as table } from "../../src/contract/operations.ts";
import { assets } from "../../src/dashboard/assets/bundled.ts";
import { pages } from "../../src/dashboard/pages.ts";
import { app } from "../../src/edge/http/app.ts";
import { definePulledJob } from "../../src/index.ts";
import { useDeployment } from "./deployment.ts";
import { documentedAnswer } from "./documented-answer.ts";

const deployment = useDeployment([definePulledJob("print", { payload: z.object({}) })]);
const { call, enqueueMany } = deployment;

const operations = Object.values<Operation>(table);
const undocumented = [
  "POST /internal/drains/:queue",
  "POST /internal/wake",
  "GET /openapi.json",
  "GET /docs",
  ...["sign-in", "sign-out", "theme", "actions/:action"].map((path) => `POST /${path}`),
  ...[...pages, ...Object.values(assets)].map(({ path }) => `GET ${path}`),
];

test("the document has every route and no other", () => {
  const routes = app.routes
    .filter((route) => route.method !== "ALL")
    .map((route) => `${route.method} ${route.path}`);
  const documented = operations.map(
    ({ method, path }) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`,
  );
  expect([...new Set(routes)].sort()).toEqual([...documented, ...undocumented].sort());
});

test("the document is OpenAPI 3.1 with a schema for every body and answer", async () => {
  const response = await call("/openapi.json", { headers: {} });
  expect(response.status).toBe(200);
  const document = (await response.json()) as {
    openapi: string;
    paths: Record<string, Record<string, object>>;
  };
  expect(document.openapi).toBe("3.1.0");
  for (const { method, path, body } of operations) {
    const described = document.paths[path]?.[method] as {
      requestBody?: object;
      responses: Record<string, object>;
    };
    expect(Object.keys(described.responses).length).toBeGreaterThan(0);
    if (body) expect(described.requestBody).toBeDefined();
  }
});

test("the docs page names every operation and loads nothing from elsewhere", async () => {
  const response = await call("/docs", { headers: {} });
  const text = await response.text();
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  for (const { path } of operations) expect(text).toContain(path);
  expect(text).not.toMatch(/<script|src=|@import|https?:/);
});

test("a worker test fails on an answer that the document does not describe", async () => {
  const request = new Request("https://sluice.example/v1/jobs/batch", { method: "POST" });
  const answer = (body: object, init: ResponseInit) => documentedAnswer(request, Response.json(body, init));
  const problem = { type: "t", title: "t", status: 503, detail: "d" };
  const headers = { "content-type": "application/problem+json", "retry-after": "5" };
  await expect(answer({ jobs: [] }, { status: 201 })).resolves.toBeInstanceOf(Response);
  await expect(answer(problem, { status: 503, headers })).resolves.toBeInstanceOf(Response);
  await expect(answer({ jobs: [], extra: 1 }, { status: 201 })).rejects.toThrow("does not fit");
  await expect(answer({ jobs: [{ job_id: "1" }] }, { status: 201 })).rejects.toThrow("does not fit");
  await expect(answer({ jobs: [] }, { status: 202 })).rejects.toThrow("does not know this status");
  await expect(answer(problem, { status: 503 })).rejects.toThrow("Retry-After");
});

const adminBodies: Record<string, object> = {
  "post /v1/admin/dlq/replay": { type: "print" },
  "post /v1/admin/dlq-runs": { action: "replay" },
  "post /v1/admin/alarms/silences": { alarm: "dead_letters", until: "2026-01-01T00:00:00Z" },
  "post /v1/admin/alarms/{alarm}/silence": { minutes: 1 },
  "post /v1/admin/keys": { name: "shop", role: "producer" },
};

const flow = { jobs: [{ ref: "a", type: "print" }] };

/** A flow that has ended, so that it can be deleted. */
async function flowPath(path: string): Promise<string> {
  const made = await call("/v1/flows", { method: "POST", body: JSON.stringify(flow) });
  const { flow_id: id } = (await made.json()) as { flow_id: string };
  if (path === "/v1/flows/{id}") await call(`/v1/flows/${id}/cancel`, { method: "POST", body: "{}" });
  return path.replace("{id}", id);
}

async function schedulePath(path: string, method: string): Promise<{ path: string; body: object }> {
  const body = { cron: "0 2 * * *", type: "print" };
  const named = path.replace("{name}", "nightly");
  if (method !== "put") await call("/v1/schedules/nightly", { method: "PUT", body: JSON.stringify(body) });
  return { path: named, body };
}

/** The path with an existing id or name as its parameter. */
async function adminPath(path: string, method: string): Promise<string> {
  if (path.includes("/dlq/{id}")) {
    const [id] = await enqueueMany("print", [{}]);
    await deployment.query("update sluice.job set expires_at = now() where id = $1", [id]);
    await deployment.query("insert into sluice.expiry values (now(), $1)", [id]);
    await deployment.query("select sluice.reap_expired(10)");
    return path.replace("{id}", id ?? "");
  }
  if (path.includes("-runs/{run}")) {
    const started =
      "select sluice.start_dead_run('me', 'discard', null, null, null, null, null, null, 1, null, null) as run";
    const [row] = await deployment.query<{ run: { id: number } }>(started);
    return path.replace("{run}", String(row?.run.id));
  }
  if (path.includes("/keys/{id}") && method === "delete") {
    const made = await call("/v1/admin/keys", {
      method: "POST",
      body: JSON.stringify({ name: "x", role: "viewer" }),
    });
    return path.replace("{id}", ((await made.json()) as { id: string }).id);
  }
  const query = path.endsWith("/partitions") ? "?blocked=true" : "";
  const names = { type: "print", queue: "default", worker_id: "w", alarm: "dead_letters" };
  return path.replace(/\{(\w+)\}/, (_, name: keyof typeof names) => names[name]) + query;
}

describe("each operation answers as the document says", () => {
  async function example(path: string, method: string): Promise<{ path: string; body?: object }> {
    await enqueueMany("print", [{}]);
    if (path === "/v1/jobs") return { path, body: { type: "print" } };
    if (path === "/v1/jobs/batch") return { path, body: { jobs: [{ type: "print" }] } };
    if (path === "/v1/claims") return { path, body: { worker_id: "w" } };
    if (path === "/v1/flows") return { path, body: flow };
    if (path.startsWith("/v1/flows/")) return { path: await flowPath(path) };
    if (path.startsWith("/v1/schedules/")) return schedulePath(path, method);
    if (path === "/v1/signals/{name}") return { path: "/v1/signals/go", body: { key: "k" } };
    if (path === "/v1/chains/{id}" || path.endsWith("/resolve")) {
      const [id = ""] = await enqueueMany("print", [{}]);
      return { path: path.replace("{id}", id), body: {} };
    }
    if (path === "/v1/workers") return { path, body: { worker_id: "w", queues: ["default"] } };
    if (!path.includes("/jobs/{id}") && !["/v1/settlements", "/v1/extensions"].includes(path))
      return { path: await adminPath(path, method), body: adminBodies[`${method} ${path}`] ?? {} };
    const claimed = await call("/v1/claims", {
      method: "POST",
      body: JSON.stringify({ worker_id: "w", limit: 1 }),
    });
    const { jobs } = (await claimed.json()) as { jobs: [{ job_id: string; lease: string }] };
    const [{ job_id, lease }] = jobs;
    if (path === "/v1/settlements")
      return { path, body: { settlements: [{ job_id, lease, outcome: "complete" }] } };
    if (path === "/v1/extensions")
      return { path, body: { extensions: [{ job_id, lease }], lease_seconds: 60 } };
    const bodies: Record<string, object> = {
      fail: { lease, error: "x" },
      extend: { lease, lease_seconds: 60 },
      children: { lease, jobs: [{ type: "print", idempotency_key: `${job_id}:a:0` }] },
    };
    if (path.endsWith("/cancel")) {
      await call(`/v1/jobs/${job_id}/release`, { method: "POST", body: JSON.stringify({ lease }) });
    }
    const verb = path.split("/").at(-1) ?? "";
    return { path: path.replace("{id}", job_id), body: bodies[verb] ?? (verb === "cancel" ? {} : { lease }) };
  }

  test.each(operations.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
    "%s",
    async (_, operation) => {
      const { path, body } = await example(operation.path, operation.method);
      const init =
        operation.method === "get"
          ? {}
          : { method: operation.method.toUpperCase(), body: JSON.stringify(body) };
      const response = await call(path, init);
      const schema = operation.answers[response.status];
      expect(schema, `${response.status}`).toBeDefined();
      const answer = await (operation.answersAs ? response.text() : response.json());
      expect(schema?.safeParse(answer).error).toBeUndefined();
    },
  );
});
