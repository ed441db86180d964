// The producers' routes beyond one job: batches, lists, cancelling, and refused requests.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { batchResponse, listResponse } from "../../src/contract/jobs.ts";
import { problem } from "../../src/contract/problem.ts";
import { defineJob } from "../../src/index.ts";
import { useDeployment } from "./deployment.ts";

// With the default timeout of five minutes no nudge runs these jobs, so they stay pending.
const deployment = useDeployment([
  defineJob("note", { payload: z.object({ n: z.number() }), run: ({ n }) => n }),
  defineJob("other", { payload: z.object({}), run: () => {} }),
  defineJob("any", { payload: z.record(z.string(), z.json()), run: () => {} }),
]);
const { call, fire, look, query } = deployment;
const post = (path: string, body: unknown) => call(path, { method: "POST", body: JSON.stringify(body) });
const note = (n: number, fields = {}) => ({ type: "note", payload: { n }, ...fields });

async function batch(...jobs: object[]): Promise<string[]> {
  const response = await post("/v1/jobs/batch", { jobs });
  expect(response.status).toBe(201);
  return batchResponse.parse(await response.json()).jobs.map((job) => job.job_id);
}

async function list(query = ""): Promise<ReturnType<typeof listResponse.parse>> {
  const response = await call(`/v1/jobs${query}`);
  expect(response.status).toBe(200);
  return listResponse.parse(await response.json());
}

describe("a batch", () => {
  test("enqueues 100 jobs with one statement, in order", async () => {
    const ids = await batch(...Array.from({ length: 100 }, (_, n) => note(n)));
    expect(new Set(ids).size).toBe(100);
    expect(await look(ids[42] ?? "")).toMatchObject({ payload: { n: 42 }, status: "pending" });
  });

  test("says which of its jobs already existed", async () => {
    const [first] = await batch(note(1, { idempotency_key: "k" }));
    const response = await post("/v1/jobs/batch", { jobs: [note(2), note(1, { idempotency_key: "k" })] });
    const { jobs } = batchResponse.parse(await response.json());
    expect(jobs.map((job) => job.deduplicated)).toEqual([false, true]);
    expect(jobs[1]?.job_id).toBe(first);
  });

  test.each([
    ["a bad field", [note(1), note(2), note(3), note(4, { priority: 10 })], 400, "jobs.3.priority"],
    ["an invalid payload", [note(1), { type: "note", payload: { n: "x" } }], 400, "jobs.1.payload.n"],
    [
      "a job that has both keys",
      [note(1), note(2, { partition_key: "a", fair_key: "b" })],
      400,
      "jobs.1.fair_key",
    ],
    ["a type that is not registered", [note(1), { type: "nobody" }], 403, undefined],
    ["no job", [], 400, "jobs"],
    ["101 jobs", Array.from({ length: 101 }, (_, n) => note(n)), 400, "jobs"],
    [
      "a payload that is too large",
      [note(1), note(2, { payload: { n: 1, x: "y".repeat(70_000) } })],
      413,
      undefined,
    ],
    [
      "one key for two requests",
      [note(1, { idempotency_key: "z" }), note(2, { idempotency_key: "z" })],
      422,
      undefined,
    ],
  ])("with %s is refused, and nothing is written", async (_, jobs, status, path) => {
    const response = await post("/v1/jobs/batch", { jobs });
    expect(response.status).toBe(status);
    const document = problem.parse(await response.json());
    if (path) expect(document.errors?.[0]?.path).toBe(path);
    expect(await query("select from sluice.job")).toEqual([]);
  });
});

describe("a list", () => {
  test("is paged by a cursor, newest first; no job is missing or appears twice", async () => {
    const ids = await batch(...Array.from({ length: 25 }, (_, n) => note(n)));
    const listedIds: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page = await list(`?limit=10&cursor=${cursor}`);
      listedIds.push(...page.jobs.map((job) => job.job_id));
      cursor = page.next_cursor;
    }
    expect(listedIds).toEqual(ids.toReversed());
  });

  test("can be filtered by type, status, queue and tag", async () => {
    const [a, b] = await batch(note(1, { tags: ["red"] }), note(2, { queue: "side" }), { type: "other" });
    await fire();
    const [c] = await batch(note(3));
    const found = async (query: string) => (await list(query)).jobs.map((job) => job.job_id);
    expect(await found("?type=note")).toEqual([c, b, a]);
    expect(await found("?status=pending")).toEqual([c]);
    expect(await found("?status=completed&type=note")).toEqual([b, a]);
    expect(await found("?queue=side")).toEqual([b]);
    expect(await found("?tag=red")).toEqual([a]);
    expect(await found("?status=dead")).toEqual([]);
  });

  test.each(["?limit=101", "?limit=0", "?status=lost", "?cursor=%21", "?colour=red"])(
    "refuses %s",
    async (bad) => {
      const response = await call(`/v1/jobs${bad}`);
      expect(response.status).toBe(400);
      expect(problem.parse(await response.json()).errors).toHaveLength(1);
    },
  );
});

describe("cancelling", () => {
  test("works while the job is pending, due or scheduled, and never afterwards", async () => {
    const [due = "", later = "", done = ""] = await batch(note(1), note(2, { delay_seconds: 60 }), note(3));
    for (const id of [due, later]) {
      const response = await post(`/v1/jobs/${id}/cancel`, {});
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ job_id: id, status: "cancelled" });
    }
    await fire();
    for (const id of [due, done]) {
      const response = await post(`/v1/jobs/${id}/cancel`, {});
      expect(response.status).toBe(409);
      expect(problem.parse(await response.json()).type).toBe("urn:sluice:problem:conflict");
    }
    expect((await post("/v1/jobs/019a0000-0000-7000-8000-000000000000/cancel", {})).status).toBe(404);
  });
});

describe("a payload that Postgres would not return unchanged is refused", () => {
  const raw = (payload: string) =>
    call("/v1/jobs", { method: "POST", body: `{"type":"any","payload":${payload}}` });

  test.each([
    String.raw`{"a":"x\u0000y"}`,
    String.raw`{"a":"\ud800"}`,
    String.raw`{"\udc00":1}`,
    `{"a":[12345678901234567890]}`,
    `{"a":0.1234567890123456789}`,
    `{"a":1e999}`,
    `{"a":1e-999}`,
    `{"a":1,"a":2}`,
    `{"a":{"b":1,"\\u0062":2}}`,
    `{"__proto__":{"x":1}}`,
    `{"a":${"[".repeat(101)}${"]".repeat(101)}}`,
    `{"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`,
  ])("%s", async (payload) => {
    const response = await raw(payload);
    expect(response.status).toBe(400);
    expect(problem.parse(await response.json()).errors).toHaveLength(1);
    expect(await query("select from sluice.job")).toEqual([]);
  });

  test.each([
    String.raw`{"a":"😀 \u00e9 \\ \"","b":{"":[null,true,-0.5,1e21,9007199254740991,0.30000000000000004]}}`,
    `{"toString":1,"constructor":{"x":2}}`,
    `{"a":"\\"b\\":[{","c":{"d":":"}}`,
    `{"a":${"[".repeat(90)}${"]".repeat(90)}}`,
    `{"a":[${Array.from({ length: 10_000 }, (_, n) => n)}]}`,
  ])("but %s is stored and returned unchanged", async (payload) => {
    const response = await raw(payload);
    expect(response.status).toBe(201);
    const { job_id } = (await response.json()) as { job_id: string };
    expect((await look(job_id)).payload).toEqual(JSON.parse(payload));
  });
});

test("a wrong method is a 405 that names the allowed ones", async () => {
  const response = await call("/v1/jobs/batch", { method: "DELETE" });
  expect(response.status).toBe(405);
  expect(response.headers.get("allow")).toContain("POST");
  expect(problem.parse(await response.json()).status).toBe(405);
});

test("a queue that is too deep refuses jobs; other queues accept them", async () => {
  const shallow = { SLUICE_MAX_DEPTH: "3" };
  const add = (queue: string) =>
    call("/v1/jobs", { method: "POST", body: JSON.stringify(note(1, { queue })) }, shallow);
  await deployment.enqueueMany("note", [{ n: 1 }, { n: 2 }, { n: 3 }], { queue: "deep" });
  // The depth is read after a response, at most every 5 s, so the first jobs may still be accepted.
  await expect.poll(async () => (await add("deep")).status, { timeout: 15_000, interval: 200 }).toBe(429);
  const refused = await add("deep");
  expect(refused.headers.get("retry-after")).not.toBeNull();
  expect(problem.parse(await refused.json()).type).toBe("urn:sluice:problem:queue_full");
  expect((await add("flat")).status).toBe(201);
});
