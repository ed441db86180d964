// Durable steps and cancelled running jobs in workerd, through the HTTP API.
import { describe, expect, test } from "vitest";
import { jobResponse } from "../../src/contract/jobs.ts";
import { claimResponse, stepsResponse } from "../../src/contract/work.ts";
import { sleep } from "../../src/jobs/examples/sleep.ts";
import { steps } from "../../src/jobs/examples/steps.ts";
import { useDeployment } from "./deployment.ts";

const { bringForward, call, enqueueMany, fire, look, query } = useDeployment([steps, sleep]);
const post = (path: string, body: object) => call(path, { method: "POST", body: JSON.stringify(body) });

describe("the type steps", () => {
  test("runs each step once, with a short sleep between them", async () => {
    const [id = ""] = await enqueueMany("steps", [{ sleep_seconds: 0.1 }]);
    await fire();
    expect(await look(id)).toMatchObject({
      status: "completed",
      output: { first_runs: 1, second_runs: 1, signal: null },
    });
  });

  test("goes on in another invocation after a long sleep", async () => {
    const [id = ""] = await enqueueMany("steps", [{ sleep_seconds: 3600 }]);
    await fire();
    expect(await look(id)).toMatchObject({ status: "pending", attempts: 0 });
    await query("update sluice.checkpoint set value = '1' where name like 'sleep:%'");
    await bringForward();
    await fire();
    expect(await look(id)).toMatchObject({ status: "completed", output: { first_runs: 1, second_runs: 1 } });
  });

  test("waits for its signal", async () => {
    const [id = ""] = await enqueueMany("steps", [{ sleep_seconds: 0, signal_key: "k1" }]);
    await fire();
    expect(await look(id)).toMatchObject({ status: "blocked" });
    await query("select sluice.signal('go', 'k1', '{\"by\": \"ann\"}')");
    await fire();
    expect(await look(id)).toMatchObject({
      status: "completed",
      attempts: 1,
      output: { first_runs: 1, second_runs: 1, signal: { by: "ann" } },
    });
  });
});

async function claimOne() {
  const response = await post("/v1/claims", { worker_id: "w1", limit: 1 });
  const [job] = claimResponse.parse(await response.json()).jobs;
  if (!job) throw new Error("nothing was claimed");
  return job;
}

describe("a puller", () => {
  test("stores steps, reads them again, and suspends its job", async () => {
    const [id = ""] = await enqueueMany("sleep", [{ ms: 1 }]);
    const { lease } = await claimOne();
    const path = `/v1/jobs/${id}/steps`;
    const stored = await post(path, {
      lease,
      steps: [
        { name: "one", value: { n: 1 }, took_ms: 1_250 },
        { name: "rest", seconds: 60 },
      ],
    });
    expect(stored.status).toBe(200);
    expect(stepsResponse.parse(await stored.json())).toMatchObject({
      cancel_requested: false,
      steps: { rest: expect.any(Number) },
    });
    const { steps: shown = [] } = jobResponse.parse(await (await call(`/v1/jobs/${id}`)).json());
    expect(shown).toMatchObject([
      { name: "one", kind: "run", value: { n: 1 } },
      { name: "rest", kind: "sleep" },
    ]);
    const lengths = shown.map(
      ({ started_at, ended_at }) => Date.parse(ended_at ?? "") - Date.parse(started_at ?? ""),
    );
    expect(lengths[0]).toBe(1_250);
    expect(Math.round((lengths[1] ?? 0) / 1_000)).toBe(60);
    const refused = await post(path, { lease, steps: [{ name: "two", value: 1, took_ms: -1 }] });
    expect(refused.status).toBe(400);
    const repeated = await post(path, { lease, steps: [{ name: "one", value: 2 }] });
    expect(await repeated.json()).toMatchObject({ steps: { one: { n: 1 } } });

    const settled = await post("/v1/settlements", {
      settlements: [{ job_id: id, lease, outcome: "suspend", seconds: 0 }],
    });
    expect(await settled.json()).toMatchObject({ settlements: [{ status: "pending", applied: true }] });
    expect((await post(path, { lease, steps: [] })).status).toBe(409);

    const again = await claimOne();
    expect(again).toMatchObject({ job_id: id, attempt: 1 });
    const all = await post(path, { lease: again.lease });
    expect(await all.json()).toMatchObject({ steps: { one: { n: 1 }, rest: expect.any(Number) } });
  });

  test("suspends its job until a signal comes", async () => {
    const [id = ""] = await enqueueMany("sleep", [{ ms: 1 }]);
    const { lease } = await claimOne();
    const signal = { name: "go", key: "k2" };
    await post("/v1/settlements", { settlements: [{ job_id: id, lease, outcome: "suspend", signal }] });
    expect(await look(id)).toMatchObject({ status: "blocked" });
    await query("select sluice.signal('go', 'k2')");
    expect(await claimOne()).toMatchObject({ job_id: id });
  });
});

describe("cancel with running", () => {
  test("asks a running job to stop: extend and steps tell it, and a release ends it as cancelled", async () => {
    const [id = ""] = await enqueueMany("sleep", [{ ms: 1 }]);
    const { lease } = await claimOne();
    expect((await post(`/v1/jobs/${id}/cancel`, {})).status).toBe(409);
    const asked = await post(`/v1/jobs/${id}/cancel`, { running: true });
    expect(asked.status).toBe(202);
    expect(await asked.json()).toMatchObject({ job_id: id, status: "processing", cancel_requested: true });
    const extended = await post(`/v1/jobs/${id}/extend`, { lease, lease_seconds: 60 });
    expect(await extended.json()).toMatchObject({ cancel_requested: true });
    const many = await post("/v1/extensions", { extensions: [{ job_id: id, lease }], lease_seconds: 60 });
    expect(await many.json()).toMatchObject({ extensions: [{ cancel_requested: true }] });
    const stored = await post(`/v1/jobs/${id}/steps`, { lease });
    expect(await stored.json()).toMatchObject({ cancel_requested: true });
    const released = await post(`/v1/jobs/${id}/release`, { lease });
    expect(jobResponse.parse(await released.json())).toMatchObject({ status: "cancelled" });
    expect((await post(`/v1/jobs/${id}/cancel`, { running: true })).status).toBe(409);
  });

  test("stops a handler in a drain within 10 s, and nothing of it is retried", async () => {
    const [id = ""] = await enqueueMany("sleep", [{ ms: 60_000 }]);
    const drained = fire();
    await expect.poll(async () => (await look(id)).status).toBe("processing");
    const askedMs = Date.now();
    expect((await post(`/v1/jobs/${id}/cancel`, { running: true })).status).toBe(202);
    await drained;
    expect(Date.now() - askedMs).toBeLessThan(10_000);
    expect(await look(id)).toMatchObject({ status: "cancelled", errors: [] });
  });

  test("cancels a pending job at once", async () => {
    const [id = ""] = await enqueueMany("sleep", [{ ms: 1 }]);
    const cancelled = await post(`/v1/jobs/${id}/cancel`, { running: true });
    expect(cancelled.status).toBe(200);
    expect(await cancelled.json()).toMatchObject({ status: "cancelled" });
  });
});
