// sluice/client in workerd, against the Worker itself.
import { exports } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { createClient, SluiceRequestError } from "../../src/client/client.ts";
import { approval } from "../../src/jobs/examples/approval.ts";
import { echo } from "../../src/jobs/examples/echo.ts";
import { relay } from "../../src/jobs/examples/relay.ts";
import { sleep } from "../../src/jobs/examples/sleep.ts";
import { sum } from "../../src/jobs/examples/sum.ts";
import { adminKey, bindings } from "./deployment.ts";

const url = "https://sluice.example";
const toWorker = (address: string, init: RequestInit) => exports.default.fetch(address, init);
const client = createClient({ url, key: adminKey, fetch: toWorker });

describe("the client and the Worker together", () => {
  test("enqueue a job, wait for it and show its output", async () => {
    const id = await client.enqueue(echo, { hello: "world" }, { tags: ["client"], priority: 7 });
    const job = await client.wait(id, { timeoutMs: 5_000, intervalMs: 20 });
    expect(job).toMatchObject({
      jobId: id,
      status: "completed",
      priority: 7,
      tags: ["client"],
      output: { hello: "world" },
    });
    expect(await client.get(id)).toEqual(job);
  });

  test("make no second job when an answer is lost", async () => {
    const answers: unknown[] = [];
    const lossy = createClient({
      url,
      key: adminKey,
      fetch: async (address, init) => {
        const response = await toWorker(address, init);
        answers.push(await response.clone().json());
        if (answers.length === 1) throw new TypeError("Network connection lost.");
        return response;
      },
    });
    const id = await lossy.enqueue(sleep, { ms: 1 });
    expect(answers).toMatchObject([
      { job_id: id, deduplicated: false },
      { job_id: id, deduplicated: true },
    ]);
  });

  test("enqueue more jobs than one batch holds, in order", async () => {
    const payloads = Array.from({ length: 101 }, (_, n) => ({ ms: n }));
    const ids = await client.enqueueMany(sleep, payloads, { delaySeconds: 3600, tags: ["many"] });
    const jobs = await Promise.all([ids[0], ids[99], ids[100]].map((id = "") => client.get(id)));
    expect(jobs.map((job) => job.payload)).toEqual([{ ms: 0 }, { ms: 99 }, { ms: 100 }]);
    expect(new Set(ids).size).toBe(101);
  });

  test("name the index of one bad payload among many, and enqueue nothing", async () => {
    const payloads = [{ ms: 1 }, { ms: "1" }];
    await expect(client.enqueueMany("sleep", payloads)).rejects.toMatchObject({
      status: 400,
      problem: { errors: [{ path: "jobs.1.payload.ms" }] },
    });
  });

  test("cancel a pending job; cancelling it again gives the same answer", async () => {
    const id = await client.enqueue(sleep, { ms: 1 }, { delaySeconds: 3600 });
    expect(await client.cancel(id)).toMatchObject({ jobId: id, status: "cancelled" });
    expect(await client.cancel(id)).toMatchObject({ jobId: id, status: "cancelled" });
    expect(await client.wait(id)).toMatchObject({ status: "cancelled" });
  });

  test("enqueue a flow once, though its answer was lost, and wait for its end with the outputs", async () => {
    let calls = 0;
    const lossy = createClient({
      url,
      key: adminKey,
      fetch: async (address, init) => {
        const response = await toWorker(address, init);
        if (address.endsWith("/v1/flows") && ++calls === 1) throw new TypeError("Network connection lost.");
        return response;
      },
    });
    const { flowId, jobs } = await lossy.enqueueFlow((flow) => {
      const parts = [1, 2, 3].map((n) => flow.add(echo, { n }));
      return { parts, total: flow.add(sum, {}, { after: { parts }, tags: ["flow"] }) };
    });
    expect(calls).toBe(2);
    expect(jobs.parts).toHaveLength(3);
    const ended = await client.wait(jobs.total, { timeoutMs: 5_000, intervalMs: 20 });
    expect(ended).toMatchObject({ jobId: jobs.total, output: { total: 6 }, flowId, tags: ["flow"] });
  });

  test("wait for the end of a chain, which is another job", async () => {
    const id = await client.enqueue(relay, { hops: 2 });
    const ended = await client.wait(id, { timeoutMs: 5_000, intervalMs: 20 });
    expect(ended).toMatchObject({
      status: "completed",
      output: { done: true },
      chain: { chain_id: id, index: 2 },
    });
    expect(ended.jobId).not.toBe(id);
  });

  test("resolve a job from outside, and send a signal that counts once", async () => {
    const id = await client.enqueue(approval, {});
    expect(await client.resolve(id, { by: "ann" })).toMatchObject({
      status: "completed",
      output: { by: "ann" },
    });
    expect(await client.resolve(id, { by: "bob" })).toMatchObject({ output: { by: "ann" } });
    const key = crypto.randomUUID();
    expect([await client.signal("go", key), await client.signal("go", key, { late: true })]).toEqual([
      true,
      false,
    ]);
  });

  test("refuse to cancel a completed job", async () => {
    const id = await client.enqueue(echo, {});
    await client.wait(id, { timeoutMs: 5_000, intervalMs: 20 });
    await expect(client.cancel(id)).rejects.toMatchObject({ status: 409 });
  });

  test("refuse an invalid payload and name the path of the field", async () => {
    const error = await client.enqueue("sleep", { ms: "1" }).catch((caught) => caught);
    expect(error).toBeInstanceOf(SluiceRequestError);
    expect(error).toMatchObject({
      status: 400,
      problem: { type: "urn:sluice:problem:request_invalid", errors: [{ path: "payload.ms" }] },
    });
  });

  test("refuse an unknown key", async () => {
    const stranger = createClient({ url, key: "sk_of_somebody_else_entirely", fetch: toWorker });
    await expect(stranger.enqueue(echo, {})).rejects.toMatchObject({ status: 401 });
  });
});

test("the client calls workerd's own fetch without an illegal invocation", async () => {
  const error = await createClient({ url: `${bindings.RECEIVER_URL}/answer/418?`, key: "sk" })
    .get("j")
    .catch((caught) => caught);
  expect(error).toMatchObject({ name: "SluiceRequestError", status: 418 });
});
