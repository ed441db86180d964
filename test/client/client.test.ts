// sluice/client over real HTTP: its requests, how it reads the answers, and that its retries make no second job.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import {
  type Client,
  createClient,
  type EnqueueOptions,
  type Job,
  SluiceRequestError,
  SluiceTimeoutError,
} from "../../src/client/client.ts";
import { type EnqueueRequest, enqueueRequest } from "../../src/contract/jobs.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { type ProducerApi, startProducerApi } from "../support/producer-api.ts";

const welcome = defineJob("welcome", {
  payload: z.object({ userId: z.string(), locale: z.string().default("en") }),
  run: () => {},
});
const list = defineJob("list", {
  payload: z.object({ items: z.array(z.object({ n: z.number() })) }),
  run: () => {},
});
const key = "sk_of_a_producer";
let api: ProducerApi;
let client: Client;

beforeAll(async () => {
  api = await startProducerApi();
});
beforeEach(() => {
  vi.spyOn(Math, "random").mockReturnValue(0); // no backoff: tries.test.ts tests the waits
  Object.assign(api, { requests: [], mishaps: [], beforeGet: () => {} });
  api.jobs.clear();
  client = createClient({ url: `${api.url}/`, key });
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => api.close());

const failed = (promise: Promise<unknown>): Promise<SluiceRequestError> =>
  promise.then(
    () => expect.fail("it should have failed"),
    (error) => {
      expect(error).toBeInstanceOf(SluiceRequestError);
      return error;
    },
  );
const keysSent = () => api.requests.map(({ body }) => (body as EnqueueRequest).idempotency_key);

describe("the client sends", () => {
  test("a job by its definition, with the key, and every option under its name in the API", async () => {
    const scheduledAt = new Date("2030-01-01T00:00:00Z");
    const options: Required<Omit<EnqueueOptions, "delaySeconds" | "fairKey" | "debounce" | "throttle">> = {
      queue: "mail",
      priority: 9,
      maxAttempts: 3,
      scheduledAt,
      expiresAt: "2031-01-01T00:00:00Z",
      idempotencyKey: "signup:1",
      partitionKey: "u1",
      tags: ["signup"],
      after: { parts: ["01900000-0000-7000-8000-000000000000"] },
      onBlockerDead: "run",
    };
    const id = await client.enqueue(welcome, { userId: "u1" }, options);
    expect([...api.jobs.keys()]).toEqual([id]);
    const [request] = api.requests;
    expect(request).toMatchObject({ method: "POST", path: "/v1/jobs" });
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
    });
    expect(request?.body).toEqual({
      type: "welcome",
      payload: { userId: "u1" },
      queue: "mail",
      priority: 9,
      max_attempts: 3,
      scheduled_at: "2030-01-01T00:00:00.000Z",
      expires_at: "2031-01-01T00:00:00Z",
      idempotency_key: "signup:1",
      partition_key: "u1",
      tags: ["signup"],
      after: { parts: ["01900000-0000-7000-8000-000000000000"] },
      on_blocker_dead: "run",
    });
    expect(enqueueRequest.parse(request?.body)).toMatchObject({ max_attempts: 3 });
  });

  test("a job by its type's name, with the given options, an idempotency key and nothing else", async () => {
    await client.enqueue("anything", { some_field: { aKey: 1 } }, { delaySeconds: 5, fairKey: "t1" });
    expect(api.requests[0]?.body).toEqual({
      type: "anything",
      payload: { some_field: { aKey: 1 } },
      delay_seconds: 5,
      fair_key: "t1",
      idempotency_key: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  test("a debounce and a throttle under their names in the API", async () => {
    const debounce = { key: "k", mode: "last", seconds: 5, maxWaitSeconds: 60 } as const;
    await client.enqueue("anything", {}, { debounce });
    const merge = { key: "k", mode: "merge", seconds: 5, maxItems: 10 } as const;
    await client.enqueue("anything", { n: 1 }, { debounce: merge });
    await client.enqueue("anything", {}, { throttle: { key: "k", seconds: 5 } });
    const bodies = api.requests.map(({ body }) => body);
    expect(bodies).toMatchObject([
      { debounce: { key: "k", mode: "last", seconds: 5, max_wait_seconds: 60 } },
      { payload: { n: 1 }, debounce: { key: "k", mode: "merge", seconds: 5, max_items: 10 } },
      { throttle: { key: "k", seconds: 5 } },
    ]);
    for (const body of bodies) expect(enqueueRequest.safeParse(body).success).toBe(true);
  });

  test("many items to merge, each with a key of its own", async () => {
    const debounce = { key: "k", mode: "merge", seconds: 5 } as const;
    const options = { debounce, idempotencyKey: ({ n }: { n: number }) => `n ${n}` };
    await client.enqueueMany("anything", [{ n: 1 }, { n: 2 }], { debounce });
    const typed = createClient<{ list: typeof list }>({ url: api.url, key });
    await typed.enqueueMany("list", [{ n: 1 }, { n: 2 }], options);
    expect(api.requests.map(({ body }) => body)).toMatchObject([
      {
        jobs: [
          { payload: { n: 1 }, debounce },
          { payload: { n: 2 }, debounce },
        ],
      },
      { jobs: [{ idempotency_key: "n 1" }, { idempotency_key: "n 2" }] },
    ]);
    // @ts-expect-error An item has a number.
    await typed.enqueueMany("list", [{ n: "1" }], { debounce });
  });

  test("an idempotency key of its own when the caller's is undefined", async () => {
    // A project without exactOptionalPropertyTypes may write this.
    const options = { idempotencyKey: undefined } as unknown as EnqueueOptions;
    await client.enqueue("anything", {}, options);
    expect(keysSent()).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  });

  test("250 jobs in three requests of at most 100, and returns their ids in order", async () => {
    const userIds = Array.from({ length: 250 }, (_, n) => `u${n}`);
    const payloads = userIds.map((userId) => ({ userId }));
    const ids = await client.enqueueMany(welcome, payloads, { queue: "bulk" });
    expect(api.requests.map(({ path, body }) => [path, (body as { jobs: object[] }).jobs.length])).toEqual([
      ["/v1/jobs/batch", 100],
      ["/v1/jobs/batch", 100],
      ["/v1/jobs/batch", 50],
    ]);
    const jobs = ids.map((id) => api.jobs.get(id));
    expect(jobs.map((job) => job?.payload.userId)).toEqual(userIds);
    expect(new Set(jobs.map((job) => job?.idempotency_key)).size).toBe(250);
    expect(new Set(jobs.map((job) => job?.queue))).toEqual(new Set(["bulk"]));
  });

  test("the caller's idempotency keys for many jobs, so that a second call makes no new jobs", async () => {
    const payloads = [{ userId: "u1" }, { userId: "u2" }];
    const call = () =>
      client.enqueueMany(welcome, payloads, { idempotencyKey: ({ userId }) => `signup:${userId}` });
    expect(await call()).toEqual(await call());
    expect([...api.jobs.values()].map((job) => job.idempotency_key)).toEqual(["signup:u1", "signup:u2"]);
  });

  test("no request for an empty list of jobs", async () => {
    expect(await client.enqueueMany(welcome, [])).toEqual([]);
    expect(api.requests).toEqual([]);
  });
});

describe("when an answer is missing", () => {
  test.each([
    "drop",
    "lose",
    { status: 429 },
    { status: 502, body: "<html>" },
    { status: 503 },
    { status: 504 },
  ] as const)("after %j the client retries with the same key, and there is one job", async (mishap) => {
    api.mishaps = [mishap, mishap];
    const id = await client.enqueue(welcome, { userId: "u1" });
    expect(api.requests).toHaveLength(3);
    expect(new Set(keysSent()).size).toBe(1);
    expect([...api.jobs.keys()]).toEqual([id]);
  });

  test("two calls never share an idempotency key", async () => {
    await client.enqueue(welcome, { userId: "u1" });
    await client.enqueue(welcome, { userId: "u1" });
    expect(new Set(keysSent()).size).toBe(2);
    expect(api.jobs.size).toBe(2);
  });

  test("a batch makes no job twice", async () => {
    api.mishaps = ["lose"];
    const ids = await client.enqueueMany(
      welcome,
      Array.from({ length: 100 }, (_, n) => ({ userId: `u${n}` })),
    );
    expect(api.requests).toHaveLength(2);
    expect([...api.jobs.keys()]).toEqual(ids);
  });

  test("the client ends a try that hangs, and retries", async () => {
    api.mishaps = ["hang"];
    const patient = createClient({ url: api.url, key, tryTimeoutMs: 50 });
    const id = await patient.enqueue(welcome, { userId: "u1" });
    expect([...api.jobs.keys()]).toEqual([id]);
    expect(api.requests).toHaveLength(2);
  });

  test("a server that never answers gives an error at the deadline, with a cause and without a status", async () => {
    api.mishaps = Array.from({ length: 100 }, () => "hang" as const);
    const startedAt = Date.now();
    const error = await failed(
      createClient({ url: api.url, key, timeoutMs: 300, tryTimeoutMs: 100 }).get("j"),
    );
    expect(error).toMatchObject({ status: 0, problem: { status: 0, title: "There was no answer" } });
    expect(error.cause).toMatchObject({ name: "TimeoutError" });
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(250);
    expect(api.requests.length).toBeGreaterThanOrEqual(2);
  });
});

describe("a refused request is not retried", () => {
  test("and the error has the problem document", async () => {
    const document = {
      type: "urn:sluice:problem:request_invalid",
      title: "Invalid request",
      status: 400,
      detail: "the payload does not fit",
      errors: [{ path: "payload.userId", message: "expected string" }],
    };
    api.mishaps = [{ status: 400, body: JSON.stringify(document) }];
    const error = await failed(client.enqueue("welcome", { userId: 1 }));
    expect(error).toMatchObject({ name: "SluiceRequestError", status: 400, problem: document });
    expect(error.message).toBe("Invalid request: the payload does not fit");
    expect(api.requests).toHaveLength(1);
  });

  test.each([401, 403, 404, 409, 413, 422, 500])(
    "after a %i, even without a problem document",
    async (status) => {
      api.mishaps = [{ status, body: "<html>a proxy's own page" }];
      const error = await failed(client.enqueue(welcome, { userId: "u1" }));
      expect(error.status).toBe(status);
      expect(error.problem).toMatchObject({
        type: "about:blank",
        status,
        detail: "<html>a proxy's own page",
      });
      expect(api.requests).toHaveLength(1);
    },
  );
});

describe("reading a job", () => {
  test("get returns it in camelCase, its payload and output unchanged", async () => {
    const id = await client.enqueue("anything", { some_field: 1 }, { maxAttempts: 7 });
    const job = await client.get(id);
    expect(job).toMatchObject({ jobId: id, status: "pending", maxAttempts: 7, payload: { some_field: 1 } });
    expect(Object.keys(job).filter((name) => name.includes("_"))).toEqual([]);
  });

  test.each(["completed", "dead", "discarded", "cancelled"] as const)(
    "wait returns the job when it is %s",
    async (status) => {
      const id = await client.enqueue(welcome, { userId: "u1" });
      const ahead: Job["status"][] = ["pending", "processing", status];
      api.beforeGet = (job) => Object.assign(job, { status: ahead.shift() ?? job.status });
      expect(await client.wait(id, { timeoutMs: 5_000, intervalMs: 1 })).toMatchObject({ jobId: id, status });
      expect(ahead).toEqual([]);
    },
  );

  test("wait fails at its timeout and gives the last status", async () => {
    const id = await client.enqueue(welcome, { userId: "u1" });
    const error = await client.wait(id, { timeoutMs: 50, intervalMs: 10 }).catch((caught) => caught);
    expect(error).toBeInstanceOf(SluiceTimeoutError);
    expect(error.message).toBe(`job ${id} is still pending after 50 ms`);
    expect(error.job).toMatchObject({ jobId: id, status: "pending" });
  });

  test("wait goes on while the server is down for a short time", async () => {
    const id = await client.enqueue(welcome, { userId: "u1" });
    api.mishaps = ["drop", { status: 503 }];
    api.beforeGet = (job) => Object.assign(job, { status: "completed" });
    expect(await client.wait(id)).toMatchObject({ status: "completed" });
  });

  test("an unknown id is a 404, and an id with slashes is encoded", async () => {
    expect((await failed(client.get("../admin/keys"))).status).toBe(404);
    expect(api.requests[0]?.path).toBe("/v1/jobs/..%2Fadmin%2Fkeys");
  });
});

describe("cancel", () => {
  test("returns the cancelled job", async () => {
    const id = await client.enqueue(welcome, { userId: "u1" });
    expect(await client.cancel(id)).toMatchObject({ jobId: id, status: "cancelled" });
  });

  test("succeeds when the answer to its first try was lost", async () => {
    const id = await client.enqueue(welcome, { userId: "u1" });
    api.mishaps = ["lose"];
    expect(await client.cancel(id)).toMatchObject({ jobId: id, status: "cancelled" });
  });

  test("of a running job is a 409", async () => {
    const id = await client.enqueue(welcome, { userId: "u1" });
    Object.assign(api.jobs.get(id) ?? {}, { status: "processing" });
    const error = await failed(client.cancel(id));
    expect(error).toMatchObject({ status: 409, problem: { detail: "the job is processing" } });
  });
});
