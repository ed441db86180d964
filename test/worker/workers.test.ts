// The workers API in workerd: heartbeats, the list of live workers, and leaving.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { problem } from "../../src/contract/problem.ts";
import { removedWorkerResponse, workerResponse, workersResponse } from "../../src/contract/workers.ts";
import { bucketCount, bucketsOf } from "../../src/core/policy/hash-ring.ts";
import { definePulledJob } from "../../src/index.ts";
import { adminCallsOf, refusal } from "./admin-calls.ts";
import { useDeployment } from "./deployment.ts";

const deployment = useDeployment([definePulledJob("print", { payload: z.object({}) })]);
const { ask, send } = adminCallsOf(deployment);

const register = (worker_id: string, ...queues: string[]) =>
  ask("POST /v1/workers", workerResponse, { worker_id, queues });
const list = async () => (await ask("GET /v1/workers", workersResponse)).workers;
const remove = (id: string) => ask(`DELETE /v1/workers/${encodeURIComponent(id)}`, removedWorkerResponse);
const secondsUntil = (time: string) => (Date.parse(time) - Date.now()) / 1000;

describe("a heartbeat", () => {
  test("of the only worker answers with all buckets and the time when it is gone", async () => {
    const { expires_at, ...answer } = await register("w1", "orders");
    expect(answer).toEqual({
      worker_id: "w1",
      workers: 1,
      buckets: Array.from({ length: bucketCount }, (_, bucket) => bucket),
    });
    expect(secondsUntil(expires_at)).toBeGreaterThan(25);
    expect(secondsUntil(expires_at)).toBeLessThan(31);
  });

  test("of several workers shares the buckets between them", async () => {
    const ids = ["w1", "w2", "w3"];
    for (const id of ids) await register(id, "orders");
    const answers = [];
    for (const id of ids) answers.push(await register(id, "orders"));
    expect(answers.map(({ workers }) => workers)).toEqual([3, 3, 3]);
    for (const { worker_id, buckets } of answers) expect(buckets).toEqual(bucketsOf(worker_id, ids));
    expect(new Set(answers.flatMap(({ buckets }) => buckets)).size).toBe(bucketCount);
  });

  test("for several queues answers with the buckets of each: every queue has a ring of its own", async () => {
    await register("w1", "orders");
    const answer = await register("w2", "mail", "orders", "mail");
    const own = bucketsOf("w2", ["w1", "w2"]);
    expect(answer).toMatchObject({ workers: 1, buckets: bucketsOf("w2", ["w2"]) });
    expect(answer.buckets_by_queue).toEqual({ mail: answer.buckets, orders: own });
    expect((await register("w1", "orders")).buckets_by_queue).toBeUndefined();
  });

  test.each([
    ["no id", { queues: ["orders"] }, "worker_id"],
    ["an empty id", { worker_id: "", queues: ["orders"] }, "worker_id"],
    ["a long id", { worker_id: "x".repeat(256), queues: ["orders"] }, "worker_id"],
    ["an id that Postgres cannot store", { worker_id: "a\0b", queues: ["orders"] }, "worker_id"],
    ["no queue", { worker_id: "w1", queues: [] }, "queues"],
    ["a bad queue", { worker_id: "w1", queues: ["orders", "No Queue"] }, "queues.1"],
    ["101 queues", { worker_id: "w1", queues: Array.from({ length: 101 }, (_, n) => `q${n}`) }, "queues"],
    ["another field", { worker_id: "w1", queues: ["orders"], kind: "drain" }, "kind"],
  ])("with %s is refused", async (_, body, path) => {
    expect(await refusal(await send("POST /v1/workers", { body }))).toEqual({ status: 400, paths: [path] });
    expect(await list()).toEqual([]);
  });

  test("of one worker too many is a 429 that says so", async () => {
    await deployment.query(
      "insert into sluice.worker select 'w' || n, 'puller', '{orders}', now(), now() from generate_series(1, 1000) as n",
    );
    const response = await send("POST /v1/workers", { body: { worker_id: "another", queues: ["orders"] } });
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("30");
    expect(problem.parse(await response.json())).toMatchObject({
      type: "urn:sluice:problem:too_many_workers",
      detail: expect.stringContaining("1,000"),
    });
    expect((await register("w1", "orders")).workers).toBe(1000);
  });
});

describe("the list", () => {
  test("has each live worker with its queues, times and numbers of buckets", async () => {
    await register("w1", "orders", "mail");
    await register("w2", "orders");
    await deployment.query("select sluice.register_worker('d1', '{orders}', 'drain')");
    const workers = await list();
    expect(workers.map(({ worker_id, kind }) => [worker_id, kind])).toEqual([
      ["d1", "drain"],
      ["w1", "puller"],
      ["w2", "puller"],
    ]);
    const shared = workers.map(({ bucket_counts }) => bucket_counts.orders ?? 0);
    expect(shared.reduce((sum, count) => sum + count, 0)).toBe(bucketCount);
    expect(workers[1]).toMatchObject({ queues: ["orders", "mail"], bucket_counts: { mail: bucketCount } });
    for (const { started_at, seen_at, expires_at } of workers) {
      expect(started_at).toBe(seen_at);
      expect(Date.parse(expires_at) - Date.parse(seen_at)).toBe(30_000);
    }
  });

  test("leaves out a worker 30 s after its last heartbeat", async () => {
    await register("w1", "orders");
    await deployment.query("update sluice.worker set seen_at = now() - interval '30 s'");
    expect(await list()).toEqual([]);
  });
});

describe("a worker that leaves", () => {
  test("is gone at once, and the others have its buckets with their next heartbeat", async () => {
    await register("w1", "orders");
    expect((await register("w2", "orders")).buckets.length).toBeLessThan(bucketCount);
    expect(await remove("w1")).toEqual({ worker_id: "w1", removed: true });
    expect((await list()).map(({ worker_id }) => worker_id)).toEqual(["w2"]);
    expect((await register("w2", "orders")).buckets).toHaveLength(bucketCount);
  });

  test("may leave twice", async () => {
    await register("w1", "orders");
    await remove("w1");
    expect(await remove("w1")).toEqual({ worker_id: "w1", removed: false });
  });

  test.each(["a/b", "ü 7%", "w?x=1#y", "w".repeat(255)])("may have the id %s", async (id) => {
    await register(id, "orders");
    expect(await remove(id)).toEqual({ worker_id: id, removed: true });
  });

  test.each(["nobody", "a\0b", "x".repeat(256)])(
    "and has an id that nobody has is no error: %j",
    async (id) => {
      expect(await remove(id)).toEqual({ worker_id: id, removed: false });
    },
  );
});

test("the metrics count live workers", async () => {
  await register("w1", "orders");
  await register("w2", "mail");
  expect(await (await send("GET /metrics")).text()).toContain("sluice_live_workers 2\n");
});
