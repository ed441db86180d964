// How a puller starts, waits and stops.
import { describe, expect, test } from "vitest";
import { createPuller, StoppedError } from "../../src/puller/puller.ts";
import { heldHandlers } from "../support/held-handlers.ts";
import { usePullerDeployment } from "../support/puller-deployment.ts";

const deployment = usePullerDeployment();
const { call, db, enqueue, key, look, pull } = deployment;
const relay = () => deployment.relay();
const patience = { timeout: 20_000, interval: 20 };
const leased = async () => (await db.pool.query("select from sluice.lease")).rowCount;

describe("stop", () => {
  test("lets running handlers finish and settles them", async () => {
    const [id = ""] = await enqueue("work", [{}]);
    const { handlers, jobs, endAll } = heldHandlers();
    const puller = pull({ handlers });
    await expect.poll(() => jobs.length, patience).toBe(1);
    const stopped = puller.stop();
    const claims = relay().to("/v1/claims").length;
    const [later = ""] = await enqueue("work", [{}]);
    endAll();
    await stopped;
    await puller.done;
    expect(await look(id)).toMatchObject({ status: "completed", output: "late" });
    expect(await look(later)).toMatchObject({ status: "pending", attempts: 0 });
    expect(relay().to("/v1/claims").length).toBeLessThanOrEqual(claims + 1);
    expect(await leased()).toBe(0);
  });

  test("aborts handlers that take longer than stopSeconds, and releases their jobs without counting the attempt", async () => {
    const [id = ""] = await enqueue("work", [{}]);
    const { handlers, jobs } = heldHandlers();
    const puller = pull({ stopSeconds: 0.2, handlers });
    await expect.poll(() => jobs.length, patience).toBe(1);
    await puller.stop();
    expect(jobs[0]?.signal.reason).toBeInstanceOf(StoppedError);
    expect(await look(id)).toMatchObject({ status: "pending", attempts: 0 });
    expect(await leased()).toBe(0);
  });

  test("releases the jobs of a claim that was answered after it", async () => {
    const ids = await enqueue("work", [{}, {}, {}]);
    let runs = 0;
    const puller = pull({
      handlers: { work: () => void runs++ },
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        if (url.endsWith("/v1/claims")) puller.stop();
        return response;
      },
    });
    await puller.done;
    expect(runs).toBe(0);
    for (const id of ids) expect(await look(id)).toMatchObject({ status: "pending", attempts: 0 });
  });

  test("before run() means that nothing is claimed", async () => {
    const puller = createPuller({
      url: relay().url,
      key,
      handleSignals: false,
      handlers: { work: () => {} },
    });
    await puller.stop();
    await puller.run();
    expect(relay().to("/v1/claims")).toEqual([]);
    expect(() => puller.run()).toThrow("run() was called before");
  });

  test("ends within stopSeconds and five more when the server is gone", async () => {
    await enqueue("work", [{}]);
    const { handlers, jobs, endAll } = heldHandlers();
    const puller = pull({ stopSeconds: 0.2, handlers });
    await expect.poll(() => jobs.length, patience).toBe(1);
    await relay().turnOff();
    endAll();
    const startedAt = Date.now();
    await puller.stop();
    await relay().turnOn();
    expect(Date.now() - startedAt).toBeLessThan(9_000);
    expect(puller.errors.some(({ job }) => job?.jobId === jobs[0]?.jobId)).toBe(true);
  });
});

describe("an idle puller", () => {
  test("sends one claim in each time that a claim waits", async () => {
    const waitSeconds = 2;
    pull({ waitSeconds, handlers: { work: () => {} } });
    const startedAt = Date.now();
    const answered = () =>
      relay()
        .to("/v1/claims")
        .filter(({ status }) => status === 200).length;
    await expect.poll(answered, patience).toBe(2);
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(2 * waitSeconds * 1000);
    expect(relay().to("/v1/claims")[0]?.body).toEqual({
      worker_id: expect.stringMatching(/^puller-[0-9a-f]{8}$/),
      queue: "default",
      types: ["work"],
      limit: 10,
      lease_seconds: 90,
      wait_seconds: waitSeconds,
      max_run: 10,
    });
  });

  test("waits longer and longer when claims come back at once", async () => {
    const claimedAtMs: number[] = [];
    pull({
      handlers: { work: () => {} },
      fetch: async (url, init) => {
        if (!url.endsWith("/v1/claims")) return fetch(url, init);
        claimedAtMs.push(Date.now());
        return Response.json({ jobs: [], has_more: false });
      },
    });
    await expect.poll(() => claimedAtMs.length, patience).toBe(5);
    const gaps = claimedAtMs.slice(1).map((ms, index) => ms - (claimedAtMs[index] ?? 0));
    for (const [index, ms] of gaps.entries()) expect(ms).toBeGreaterThanOrEqual(125 * 2 ** index - 5);
  });

  test("starts a job soon after it was enqueued", async () => {
    pull({ waitSeconds: 20, handlers: { work: () => "done" } });
    await expect.poll(() => relay().to("/v1/claims").length, patience).toBe(1);
    const [id = ""] = await enqueue("work", [{}]);
    await expect
      .poll(() => look(id), { timeout: 5_000, interval: 20 })
      .toMatchObject({ status: "completed" });
    await relay().turnOff(); // so that the claim that now waits does not delay the end of the test
    await relay().turnOn();
  });
});

describe("a puller ends with an error", () => {
  test("if its key is unknown", async () => {
    const { done } = pull({ key: "sk_of_nobody", handlers: { work: () => {} } });
    await expect(done).rejects.toMatchObject({ name: "SluiceRequestError", status: 401 });
  });

  test("if its key has another role", async () => {
    const made = await call("POST", "/v1/admin/keys", { name: "shop", role: "producer" });
    const { key: producer } = (await made.json()) as { key: string };
    const { done } = pull({ key: producer, handlers: { work: () => {} } });
    await expect(done).rejects.toMatchObject({ status: 403 });
  });

  test("if the server refuses its options", async () => {
    const { done } = pull({ leaseSeconds: 10, handlers: { work: () => {} } });
    await expect(done).rejects.toMatchObject({
      status: 400,
      problem: { errors: [{ path: "lease_seconds" }] },
    });
  });

  test.each([
    [{ handlers: {} }, "handlers: must have at least one type"],
    [{ handlers: { work: () => {} }, queues: [] }, "queues: must have at least one queue"],
    [
      { handlers: { work: () => {} }, queues: ["a", "b"], concurrency: 1 },
      "concurrency: must be a whole number",
    ],
  ])("if it is created with %o", (options, message) => {
    expect(() => createPuller({ url: relay().url, key, ...options })).toThrow(message);
  });
});

describe("the registry of workers", () => {
  /** Answers as a server with a registry. */
  function pullRegistered(status: number) {
    const calls: string[] = [];
    const puller = pull({
      workerId: "w 1",
      queues: ["a", "b"],
      handlers: { work: () => {} },
      fetch: async (url, init) => {
        const { pathname } = new URL(url);
        calls.push(`${init.method} ${pathname}`);
        if (!pathname.startsWith("/v1/workers")) return fetch(url, init);
        if (init.method === "POST") expect(JSON.parse(String(init.body)).queues).toEqual(["a", "b"]);
        return Response.json({}, { status });
      },
    });
    return { puller, calls };
  }

  test("hears of the worker before its first claim, and when it leaves", async () => {
    const { puller, calls } = pullRegistered(200);
    await expect.poll(() => calls.length, patience).toBeGreaterThanOrEqual(3);
    await puller.stop();
    expect(calls[0]).toBe("POST /v1/workers");
    expect(calls[1]).toBe("POST /v1/claims");
    expect(calls.at(-1)).toBe("DELETE /v1/workers/w%201");
  });

  test("may be missing in the server", async () => {
    const { puller, calls } = pullRegistered(404);
    await expect.poll(() => calls.length, patience).toBeGreaterThanOrEqual(3);
    await puller.stop();
    expect(puller.errors).toEqual([]);
    expect(calls.filter((name) => name.includes("workers"))).toEqual(["POST /v1/workers"]);
  });
});
