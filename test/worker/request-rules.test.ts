// Rules for requests: limits of times and queries, headers, methods, and keys that are bound to types.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { listResponse } from "../../src/contract/jobs.ts";
import { defineJob } from "../../src/index.ts";
import { adminCallsOf, refusal } from "./admin-calls.ts";
import { adminKey, crons, useDeployment } from "./deployment.ts";

const types = ["echo", "other"].map((type) =>
  defineJob(type, { payload: z.looseObject({}), timeoutSeconds: 300, run: () => null }),
);
const deployment = useDeployment(types);
const { call, look, query } = deployment;
const { addKey, send } = adminCallsOf(deployment);
const post = (body: object, headers: Record<string, string> = {}) =>
  call("/v1/jobs", {
    method: "POST",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

describe("a time outside 1970 to 9999 is refused, and the problem names its field", () => {
  const bad = [
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "1969-12-31T23:59:59Z",
  ];
  test.each(bad.flatMap((at) => ["expires_at", "scheduled_at"].map((field) => [field, at] as const)))(
    "%s: %s",
    async (field, at) => {
      const job = { type: "echo", [field]: at };
      expect(await refusal(await post(job))).toEqual({ status: 400, paths: [field] });
      const batch = await send("POST /v1/jobs/batch", { body: { jobs: [{ type: "echo" }, job] } });
      expect(await refusal(batch)).toEqual({ status: 400, paths: [`jobs.1.${field}`] });
    },
  );

  test.each(bad.slice(0, 3))("a silence until %s", async (until) => {
    const response = await send("POST /v1/admin/alarms/silences", { body: { alarm: "dead_letters", until } });
    expect(await refusal(response)).toEqual({ status: 400, paths: ["until"] });
  });

  test("an expires_at in the past is refused and makes no dead letter", async () => {
    const expires_at = new Date(Date.now() - 1000).toISOString();
    expect(await refusal(await post({ type: "echo", expires_at }))).toEqual({
      status: 400,
      paths: ["expires_at"],
    });
  });

  test("delay_seconds and scheduled_at have the same maximum", async () => {
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
    expect((await post({ type: "echo", delay_seconds: 400 * 86_400 })).status).toBe(201);
    expect((await post({ type: "echo", scheduled_at: inDays(400) })).status).toBe(201);
    const late = await post({ type: "echo", delay_seconds: 36_600 * 86_400 });
    expect(await refusal(late)).toEqual({ status: 400, paths: ["delay_seconds"] });
    expect(await refusal(await post({ type: "echo", scheduled_at: inDays(36_600) }))).toEqual({
      status: 400,
      paths: ["scheduled_at"],
    });
  });

  test("the problem names the field when the database refuses it too", async () => {
    const at = new Date(Date.now() + 60_000).toISOString();
    const response = await post({ type: "echo", scheduled_at: at, expires_at: at });
    expect(await refusal(response)).toEqual({ status: 400, paths: ["expires_at"] });
  });
});

test.each([
  ["?type=%00", "type"],
  ["?type=No%20Type", "type"],
  ["?tag=%00", "tag"],
  ["?tag=a%00b", "tag"],
  ["?queue=%00", "queue"],
  ["?cursor=%00", "cursor"],
  ["?colour=red", "colour"],
])("GET /v1/jobs%s is a 400 that names the parameter", async (search, path) => {
  expect(await refusal(await call(`/v1/jobs${search}`))).toEqual({ status: 400, paths: [path] });
});

describe("the header Idempotency-Key", () => {
  const job = { type: "echo" };
  test("does the same as the field, and must be equal to it", async () => {
    expect((await post({ ...job, idempotency_key: "a" }, { "idempotency-key": '"a"' })).status).toBe(201);
    expect((await post(job, { "idempotency-key": "a" })).status).toBe(200);
    const other = await post({ ...job, idempotency_key: "b" }, { "idempotency-key": "a" });
    expect(await refusal(other)).toEqual({ status: 400, paths: ["idempotency_key"] });
  });

  test.each(["\u00e9", "", "k".repeat(256)])("with the value %o is refused", async (key) => {
    const refused = await refusal(await post(job, { "idempotency-key": key }));
    expect(refused).toEqual({ status: 400, paths: ["idempotency-key"] });
  });
});

describe("a producer's key that is bound to types", () => {
  let key = "";
  let own = "";
  let foreign = "";
  beforeEach(async () => {
    ({ key } = await addKey("producer", { job_types: ["echo"] }));
    own = await deployment.enqueue({ type: "echo", tags: ["t"], delay_seconds: 60 });
    foreign = await deployment.enqueue({ type: "other", tags: ["t"], delay_seconds: 60 });
  });

  test("sees and cancels only jobs of its types", async () => {
    for (const request of [`GET /v1/jobs/${foreign}`, `POST /v1/jobs/${foreign}/cancel`])
      expect(await refusal(await send(request, { key }))).toMatchObject({ status: 404 });
    expect(await look(foreign)).toMatchObject({ status: "pending" });
    expect((await send(`GET /v1/jobs/${own}`, { key })).status).toBe(200);
    expect((await send(`POST /v1/jobs/${own}/cancel`, { key })).status).toBe(200);
  });

  test("lists only jobs of its types, and is refused when it asks for another type", async () => {
    for (const search of ["", "?tag=t", "?status=pending", "?queue=default", "?type=echo"]) {
      const { jobs } = listResponse.parse(await (await send(`GET /v1/jobs${search}`, { key })).json());
      expect([search, jobs.map((job) => job.job_id)]).toEqual([search, [own]]);
    }
    expect(await refusal(await send("GET /v1/jobs?type=other", { key }))).toMatchObject({ status: 403 });
  });
});

test("no request may enqueue Sluice's own jobs; the watch round still does", async () => {
  const canary = { type: "sluice.canary", queue: "sluice" };
  for (const { key } of [await addKey("producer"), await addKey("admin"), { key: adminKey }])
    expect(await refusal(await send("POST /v1/jobs", { key, body: canary }))).toMatchObject({ status: 403 });
  await deployment.fire(crons.watch);
  expect(await query("select from sluice.jobs where type = 'sluice.canary'")).toHaveLength(1);
});

describe("methods and headers", () => {
  test("a viewer may send HEAD wherever it may send GET", async () => {
    const { key } = await addKey("viewer");
    for (const path of ["/v1/admin/keys", "/v1/stats", "/metrics"]) {
      const response = await send(`HEAD ${path}`, { key });
      expect([path, response.status]).toEqual([path, 200]);
    }
  });

  test.each([
    ["GET /v1/jobs/batch", "POST"],
    ["OPTIONS /v1/jobs/batch", "POST"],
    ["DELETE /v1/jobs", "POST, GET, HEAD"],
    ["PUT /v1/stats", "GET, HEAD"],
  ])("%s is a 405 with Allow: %s", async (request, allow) => {
    const response = await send(request);
    expect([response.status, response.headers.get("allow")]).toEqual([405, allow]);
  });

  test("answers have headers that forbid caching and guessing the content type", async () => {
    for (const path of ["/v1/jobs", "/v1/admin/keys", "/metrics", "/health", "/docs", "/nowhere"]) {
      const { headers } = await call(path);
      expect([path, headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
        path,
        "no-store",
        "nosniff",
      ]);
    }
    const policy = (await call("/docs")).headers.get("content-security-policy");
    for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"])
      expect(policy).toContain(part);
  });

  test.each([
    `Bearer ${adminKey} x`,
    `Bearer ${adminKey},x`,
    "Bearer",
    `Basic ${adminKey}`,
    `Bearer\t${adminKey}`,
  ])("Authorization: %s is a 401", async (authorization) => {
    expect((await call("/v1/jobs", { headers: { authorization } })).status).toBe(401);
  });
});

test("a queue can be paused and resumed if a type, a job or a pause names it", async () => {
  await deployment.enqueueMany("echo", [{}], { queue: "side" });
  await query("insert into sluice.pause (kind, name) values ('queue', 'held')");
  for (const name of ["default", "side", "held"])
    expect((await send(`POST /v1/admin/queues/${name}/pause`)).status).toBe(200);
  for (const verb of ["pause", "resume"])
    expect(await refusal(await send(`POST /v1/admin/queues/nowhere/${verb}`))).toMatchObject({ status: 404 });
});

test("one queue too many is a 400; a batch with many new queues nudges few drains", async () => {
  const jobs = Array.from({ length: 30 }, (_, n) => ({ type: "echo", queue: `q${n}` }));
  expect((await send("POST /v1/jobs/batch", { body: { jobs } })).status).toBe(201);
  await deployment.quiet();
  const rounds = await query("select distinct queue from sluice.round where kind = 'nudge'");
  expect(rounds.length).toBeLessThanOrEqual(5);
  const name = deployment.databaseUrl.split("/").at(-1);
  await query(`alter database ${name} set sluice.max_queues = 30`);
  try {
    const fresh = () => post({ type: "echo", queue: `fresh${crypto.randomUUID().slice(0, 8)}` });
    await expect.poll(async () => (await fresh()).status, { timeout: 20_000 }).toBe(400);
  } finally {
    await query(`alter database ${name} reset sluice.max_queues`);
  }
});
