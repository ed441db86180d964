// Debounce and throttle over HTTP: what each caller is told, and which combinations are refused.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createClient } from "../../src/client/client.ts";
import { batchResponse, enqueueResponse } from "../../src/contract/jobs.ts";
import { problem } from "../../src/contract/problem.ts";
import { defineJob } from "../../src/index.ts";
import { echo } from "../../src/jobs/examples/echo.ts";
import { adminKey, useDeployment } from "./deployment.ts";

const index = defineJob("index", {
  payload: z.object({ items: z.array(z.object({ id: z.number() })) }),
  timeoutSeconds: 10,
  run: ({ items }) => items.map(({ id }) => id),
});
const deployment = useDeployment([echo, index]);
const { call, look, query, quiet } = deployment;
const post = (path: string, body: unknown) => call(path, { method: "POST", body: JSON.stringify(body) });
const client = createClient({
  url: "https://sluice.example",
  key: adminKey,
  fetch: async (url, init) => call(new URL(url as string).pathname, init as RequestInit) as never,
});

async function enqueue(fields: object) {
  const response = await post("/v1/jobs", { type: "echo", ...fields });
  return { code: response.status, ...enqueueResponse.parse(await response.json()) };
}
const debounce = { key: "k", mode: "last", seconds: 60 };

describe("a request with a debounce", () => {
  test("is answered with its outcome: 201 for a new job, else 200; a replaced job is cancelled and says by which", async () => {
    const one = await enqueue({ payload: { n: 1 }, debounce });
    expect(one).toMatchObject({ code: 201, outcome: "created", replaced_job_id: null });
    const two = await enqueue({ payload: { n: 2 }, debounce });
    expect(two).toMatchObject({ code: 200, outcome: "replaced", replaced_job_id: one.job_id });
    expect(await enqueue({ debounce: { ...debounce, mode: "first" } })).toMatchObject({
      ...{ code: 200, outcome: "kept", job_id: two.job_id, scheduled_at: two.scheduled_at },
    });
    expect(await look(one.job_id)).toMatchObject({ status: "cancelled", superseded_by: two.job_id });
    expect(await look(two.job_id)).toMatchObject({
      status: "pending",
      superseded_by: null,
      payload: { n: 2 },
    });
  });

  test("of a full list runs at once, with all payloads", async () => {
    const merge = { key: "k", mode: "merge", seconds: 600, max_items: 3 };
    const answers = [];
    for (let n = 0; n < 4; n++) answers.push(await enqueue({ payload: { n }, debounce: merge }));
    expect(answers.map(({ code, outcome }) => [code, outcome])).toEqual([
      ...[
        [201, "created"],
        [200, "merged"],
        [200, "merged"],
      ],
      [201, "created"],
    ]);
    await quiet();
    expect(await look(answers[0]?.job_id ?? "")).toMatchObject({
      status: "completed",
      output: { items: [{ n: 0 }, { n: 1 }, { n: 2 }] },
    });
    expect(await look(answers[3]?.job_id ?? "")).toMatchObject({
      status: "pending",
      payload: { items: [{ n: 3 }] },
    });
  });

  test("of a batch is answered in its place", async () => {
    const jobs = [debounce, null, debounce].map((option, n) => ({
      type: "echo",
      payload: { n },
      debounce: option,
    }));
    const response = await post("/v1/jobs/batch", { jobs });
    expect(response.status).toBe(201);
    const answers = batchResponse.parse(await response.json()).jobs;
    expect(answers.map(({ outcome }) => outcome)).toEqual(["created", undefined, "replaced"]);
    expect(answers[2]?.replaced_job_id).toBe(answers[0]?.job_id);
  });

  test("that is sent again with its idempotency key changes nothing", async () => {
    const one = await enqueue({ debounce, idempotency_key: "i" });
    await enqueue({ debounce });
    expect(await enqueue({ debounce, idempotency_key: "i" })).toMatchObject({
      ...{ code: 200, deduplicated: true, outcome: "kept", job_id: one.job_id },
    });
    const [row] = await query<{ waiting: number }>("select count(*)::int as waiting from sluice.scheduled");
    expect(row?.waiting).toBe(1);
  });

  test("checks the payload as an item of its type's list", async () => {
    const merge = { ...debounce, mode: "merge" };
    expect((await enqueue({ type: "index", payload: { id: 1 }, debounce: merge })).outcome).toBe("created");
    const response = await post("/v1/jobs", {
      type: "index",
      payload: { items: [{ id: 1 }] },
      debounce: merge,
    });
    expect(response.status).toBe(400);
    expect(problem.parse(await response.json()).errors?.[0]?.path).toBe("payload.items.0.id");
  });
});

test("a throttled request is answered with the job that was there, whatever has become of it", async () => {
  const throttle = { key: "k", seconds: 60 };
  const one = await enqueue({ throttle });
  expect(one).toMatchObject({ code: 201, outcome: "created" });
  await quiet();
  expect(await enqueue({ throttle })).toMatchObject({
    ...{ code: 200, outcome: "throttled", job_id: one.job_id },
  });
});

test("a plain request is answered as before", async () => {
  expect(Object.keys(await enqueue({}))).not.toContain("outcome");
});

const soon = new Date(Date.now() + 60_000).toISOString();
const someJob = "01900000-0000-7000-8000-000000000000";
test.each([
  ["throttle", { debounce, throttle: { key: "k", seconds: 1 } }],
  ["delay_seconds", { debounce, delay_seconds: 1 }],
  ["scheduled_at", { debounce, scheduled_at: soon }],
  ["after", { debounce, after: [someJob] }],
  ["after", { throttle: { key: "k", seconds: 1 }, after: [someJob] }],
  ["debounce.mode", { debounce: { ...debounce, mode: "best" } }],
  ["debounce.key", { debounce: { ...debounce, key: "" } }],
  ["debounce.seconds", { debounce: { key: "k", mode: "last" } }],
  ["debounce.max_wait_seconds", { debounce: { ...debounce, max_wait_seconds: 1 } }],
  ["debounce.max_items", { debounce: { ...debounce, max_items: 2 } }],
  ["throttle.seconds", { throttle: { key: "k", seconds: 0 } }],
])("a 400 names %s", async (path, fields) => {
  const response = await post("/v1/jobs", { type: "echo", ...fields });
  expect(response.status).toBe(400);
  expect(problem.parse(await response.json()).errors?.map((error) => error.path)).toContain(path);
});

test.each(["debounce", "throttle"])("a flow refuses a job with a %s by its name", async (field) => {
  const option = field === "debounce" ? debounce : { key: "k", seconds: 1 };
  const response = await post("/v1/flows", { jobs: [{ ref: "a", type: "echo", [field]: option }] });
  expect(response.status).toBe(400);
  expect(JSON.stringify(await response.json())).toContain(field);
});

test("the client tells the outcome, and takes an item of the list with the mode merge", async () => {
  const merge = { key: "k", mode: "merge", seconds: 600 } as const;
  const one = await client.enqueueWithOutcome(index, { id: 1 }, { debounce: merge });
  expect(one).toMatchObject({ outcome: "created", replacedJobId: null, deduplicated: false });
  expect(await client.enqueue(index, { id: 2 }, { debounce: merge })).toBe(one.jobId);
  expect(await client.get(one.jobId)).toMatchObject({ payload: { items: [{ id: 1 }, { id: 2 }] } });
  // @ts-expect-error Without the mode merge the payload is the whole list.
  await expect(client.enqueue(index, { id: 2 })).rejects.toMatchObject({ status: 400 });
  // @ts-expect-error With the mode merge it is an item.
  const wrong = client.enqueue(index, { items: [] }, { debounce: merge });
  await expect(wrong).rejects.toMatchObject({ status: 400 });
  const last = { key: "l", mode: "last", seconds: 600 } as const;
  const two = await client.enqueueWithOutcome(index, { items: [] }, { debounce: last });
  expect(await client.enqueueWithOutcome(index, { items: [] }, { debounce: last })).toMatchObject({
    outcome: "replaced",
    replacedJobId: two.jobId,
  });
});
