// sluice/client in workerd, against the Worker itself.
import { exports } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { createClient, SluiceRequestError } from "../../src/client/client.ts";
import { echo } from "../../src/jobs/examples/echo.ts";
import { sleep } from "../../src/jobs/examples/sleep.ts";
import { adminKey, bindings } from "./deployment.ts";

const url = "https://sluice.example";
const toWorker = (address: string, init: RequestInit) => exports.default.fetch(address, init);
const client = createClient({ url, key: adminKey, fetch: toWorker });

describe("the client and the Worker", () => {
  test("a job is enqueued, waited for and seen with its output", async () => {
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

  test("an answer that was lost on the way makes no second job", async () => {
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

  test("more jobs than one batch may have are enqueued in order", async () => {
    const payloads = Array.from({ length: 101 }, (_, n) => ({ ms: n }));
    const ids = await client.enqueueMany(sleep, payloads, { delaySeconds: 3600, tags: ["many"] });
    const jobs = await Promise.all([ids[0], ids[99], ids[100]].map((id = "") => client.get(id)));
    expect(jobs.map((job) => job.payload)).toEqual([{ ms: 0 }, { ms: 99 }, { ms: 100 }]);
    expect(new Set(ids).size).toBe(101);
  });

  test("one bad payload of many is named by its place, and none is enqueued", async () => {
    const payloads = [{ ms: 1 }, { ms: "1" }];
    await expect(client.enqueueMany("sleep", payloads)).rejects.toMatchObject({
      status: 400,
      problem: { errors: [{ path: "jobs.1.payload.ms" }] },
    });
  });

  test("a waiting job is cancelled, once and for all who ask", async () => {
    const id = await client.enqueue(sleep, { ms: 1 }, { delaySeconds: 3600 });
    expect(await client.cancel(id)).toMatchObject({ jobId: id, status: "cancelled" });
    expect(await client.cancel(id)).toMatchObject({ jobId: id, status: "cancelled" });
    expect(await client.wait(id)).toMatchObject({ status: "cancelled" });
  });

  test("a job that is done cannot be cancelled", async () => {
    const id = await client.enqueue(echo, {});
    await client.wait(id, { timeoutMs: 5_000, intervalMs: 20 });
    await expect(client.cancel(id)).rejects.toMatchObject({ status: 409 });
  });

  test("a payload that does not fit is refused with the path of its fault", async () => {
    const error = await client.enqueue("sleep", { ms: "1" }).catch((caught) => caught);
    expect(error).toBeInstanceOf(SluiceRequestError);
    expect(error).toMatchObject({
      status: 400,
      problem: { type: "urn:sluice:problem:request_invalid", errors: [{ path: "payload.ms" }] },
    });
  });

  test("another key is refused", async () => {
    const stranger = createClient({ url, key: "sk_of_somebody_else_entirely", fetch: toWorker });
    await expect(stranger.enqueue(echo, {})).rejects.toMatchObject({ status: 401 });
  });
});

test("workerd's own fetch is called as it wants to be", async () => {
  const error = await createClient({ url: `${bindings.RECEIVER_URL}/answer/418?`, key: "sk" })
    .get("j")
    .catch((caught) => caught);
  expect(error).toMatchObject({ name: "SluiceRequestError", status: 418 });
});
