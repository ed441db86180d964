// Flows over HTTP: jobs that wait for others, chains, completion from outside and signals, with the jobs of the deployed Worker.
import { describe, expect, test } from "vitest";
import { chainResponse, flowMadeResponse, flowResponse, flowsResponse } from "../../src/contract/flows.ts";
import { claimResponse } from "../../src/contract/work.ts";
import { approval } from "../../src/jobs/examples/approval.ts";
import { echo } from "../../src/jobs/examples/echo.ts";
import { fatal } from "../../src/jobs/examples/fatal.ts";
import { relay } from "../../src/jobs/examples/relay.ts";
import { sum } from "../../src/jobs/examples/sum.ts";
import { adminKey, useDeployment } from "./deployment.ts";

const deployment = useDeployment([echo, fatal, sum, relay, approval]);
const { call, enqueue, look, quiet, fire } = deployment;
const post = (path: string, body: object = {}, headers: Record<string, string> = {}) =>
  call(path, { method: "POST", body: JSON.stringify(body), headers: { ...auth, ...headers } });
const auth = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
const unknownId = "ffffffff-ffff-7fff-bfff-ffffffffffff";

async function enqueueFlow(jobs: object[], headers: Record<string, string> = {}) {
  const response = await post("/v1/flows", { jobs }, headers);
  expect(response.status).toBe(201);
  return flowMadeResponse.parse(await response.json());
}
async function lookAtFlow(id: string) {
  return flowResponse.parse(await (await call(`/v1/flows/${id}`)).json());
}
async function problemOf(response: Response) {
  const { status, detail, errors } = (await response.json()) as {
    status: number;
    detail: string;
    errors?: { path: string; message: string }[];
  };
  return { status, detail, errors };
}
const part = (n: number) => ({ ref: `part ${n}`, type: "echo", payload: { n } });

describe("a job with `after`", () => {
  test("is blocked, says for what it waits, and runs with the outputs of what it waited for", async () => {
    const waited = await enqueue({ type: "approval" });
    const parts = [await enqueue({ type: "echo", payload: { n: 2 } }), waited];
    const id = await enqueue({ type: "sum", after: { parts } });
    await quiet();
    const detail = `It waits for the end of job ${waited}.`;
    expect(await look(id)).toMatchObject({
      status: "blocked",
      waiting_for: { kind: "jobs", detail, job_ids: [waited] },
    });
    expect((await post(`/v1/jobs/${waited}/resolve`, { output: { n: 40 } })).status).toBe(200);
    await quiet();
    expect(await look(waited)).toMatchObject({ status: "completed", output: { n: 40 } });
    expect(await look(id)).toMatchObject({ status: "completed", output: { total: 42 } });
  });

  test("can be given a plain list, which fills the only slot of its type", async () => {
    const one = await enqueue({ type: "echo", payload: { n: 1 } });
    const id = await enqueue({ type: "sum", after: [one] });
    await quiet();
    await fire();
    expect(await look(id)).toMatchObject({ status: "completed", output: { total: 1 } });
  });

  test("dies with what it waits for, names the culprit, and comes back when that is replayed", async () => {
    const culprit = await enqueue({ type: "approval" });
    const id = await enqueue({ type: "sum", after: { parts: [culprit] } });
    const last = await enqueue({ type: "echo", after: [id] });
    await quiet(); // a drain that looks at the culprit has locked it
    const { jobs } = claimResponse.parse(
      await (await post("/v1/claims", { worker_id: "w", types: ["approval"] })).json(),
    );
    const lease = jobs[0]?.lease;
    await post(`/v1/jobs/${culprit}/fail`, { lease, error: "no", fatal: true });
    await fire();
    await fire();
    const dead = { status: "dead", dead_reason: "blocker" };
    expect(await look(id)).toMatchObject({ ...dead, culprit });
    expect(await look(last)).toMatchObject({ ...dead, culprit: id });

    await post(`/v1/admin/dlq/${culprit}/replay`);
    await fire();
    expect(await look(id)).toMatchObject({ status: "blocked", dead_reason: null, culprit: null });
    await post(`/v1/jobs/${culprit}/resolve`, { output: { n: 5 } });
    await quiet();
    await fire();
    expect(await look(id)).toMatchObject({ status: "completed", output: { total: 5 } });
    expect(await look(last)).toMatchObject({ status: "completed" });
  });

  test("runs with the outcome at hand if its producer chose so", async () => {
    const culprit = await enqueue({ type: "fatal", payload: { message: "no" } });
    const good = await enqueue({ type: "echo", payload: { n: 3 } });
    const id = await enqueue({ type: "sum", after: { parts: [culprit, good] }, on_blocker_dead: "run" });
    await quiet();
    await fire();
    expect(await look(id)).toMatchObject({ status: "completed", output: { total: 3 } });
  });

  test.each([
    [{ after: ["no id"] }, 400, "after"],
    [{ after: { others: [] } }, 400, "after.others"],
    [{ after: [unknownId] }, 400, "after"],
    [{ on_blocker_dead: "cry" }, 400, "on_blocker_dead"],
  ])("is refused with %j, and nothing is written", async (fields, status, path) => {
    const response = await post("/v1/jobs", { type: "sum", ...fields });
    const problem = await problemOf(response);
    expect(problem).toMatchObject({ status });
    expect(problem.errors?.[0]?.path ?? problem.detail).toContain(path);
    expect(await deployment.query("select from sluice.jobs")).toEqual([]);
  });
});

describe("a flow", () => {
  test("is enqueued in one request, in any order of its jobs, and shows its progress", async () => {
    const made = await enqueueFlow([
      { ref: "sum", type: "sum", after: { parts: ["part 1", "part 2"] } },
      { ...part(1), after: ["gate"] },
      part(2),
      { ref: "gate", type: "approval" },
    ]);
    expect(made.jobs.map(({ ref }) => ref)).toEqual(["sum", "part 1", "part 2", "gate"]);
    expect(made.jobs.map(({ status }) => status)).toEqual(["blocked", "blocked", "pending", "pending"]);
    await quiet();
    const flow = await lookAtFlow(made.flow_id);
    expect(flow).toMatchObject({
      status: "running",
      total: 4,
      counts: { blocked: 2, pending: 1, processing: 0, completed: 1, dead: 0, cancelled: 0, discarded: 0 },
      next_cursor: null,
    });
    expect(flow.jobs.map(({ job_id }) => job_id)).toEqual(made.jobs.map(({ job_id }) => job_id));
    expect(flow.jobs.map(({ flow_id }) => flow_id)).toEqual(made.jobs.map(() => made.flow_id));

    await post(`/v1/jobs/${made.jobs[3]?.job_id}/resolve`);
    await quiet();
    await fire();
    await fire();
    expect(await lookAtFlow(made.flow_id)).toMatchObject({ status: "completed", counts: { completed: 4 } });
    expect(await look(made.jobs[0]?.job_id ?? "")).toMatchObject({ output: { total: 3 } });
  });

  test("is paged, and listed newest first", async () => {
    const ids = [];
    for (const n of [1, 2, 3]) ids.push((await enqueueFlow([part(n), part(n + 1), part(n + 2)])).flow_id);
    const first = flowsResponse.parse(await (await call("/v1/flows?limit=2")).json());
    const rest = flowsResponse.parse(
      await (await call(`/v1/flows?limit=2&cursor=${first.next_cursor}`)).json(),
    );
    expect([...first.flows, ...rest.flows].map(({ flow_id }) => flow_id)).toEqual(ids.toReversed());
    const page = flowResponse.parse(await (await call(`/v1/flows/${ids[0]}?limit=2`)).json());
    const next = flowResponse.parse(
      await (await call(`/v1/flows/${ids[0]}?limit=2&cursor=${page.next_cursor}`)).json(),
    );
    expect([page.jobs.length, next.jobs.length]).toEqual([2, 1]);
  });

  test.each([
    ["an unknown ref", [{ ...part(1), after: ["nobody"] }], '"nobody"'],
    ["a ref twice", [part(1), part(1)], '"part 1"'],
    [
      "a cycle",
      [
        { ...part(1), after: ["part 2"] },
        { ...part(2), after: ["part 1"] },
      ],
      "part ",
    ],
    ["a job that waits for itself", [{ ...part(1), after: ["part 1"] }], "part 1"],
    ["no jobs", [], "jobs"],
    ["an unknown id", [{ ...part(1), after: [{ job_id: unknownId }] }], unknownId],
    ["an unknown slot", [{ ref: "s", type: "sum", after: { other: [] } }], "jobs.0.after.other"],
  ])("with %s is refused with a sentence that names it, and nothing is written", async (_, jobs, name) => {
    const problem = await problemOf(await post("/v1/flows", { jobs }));
    expect(problem.status).toBe(400);
    expect(JSON.stringify([problem.detail, problem.errors])).toContain(JSON.stringify(name).slice(1, -1));
    expect(await deployment.query("select from sluice.jobs")).toEqual([]);
    expect(await deployment.query("select from sluice.flow")).toEqual([]);
  });

  test("with an idempotency key is made once", async () => {
    const jobs = [part(1), { ref: "sum", type: "sum", after: { parts: ["part 1"] } }];
    const first = await enqueueFlow(jobs, { "idempotency-key": "k" });
    const second = await post("/v1/flows", { jobs }, { "idempotency-key": "k" });
    expect(second.status).toBe(200);
    const again = flowMadeResponse.parse(await second.json());
    expect(again.flow_id).toBe(first.flow_id);
    expect(again.jobs.map(({ job_id }) => job_id)).toEqual(first.jobs.map(({ job_id }) => job_id));
    const other = await post("/v1/flows", { jobs: [part(2)] }, { "idempotency-key": "k" });
    expect(other.status).toBe(422);
  });

  test("is cancelled with all that has not started, and deleted when it has ended", async () => {
    const made = await enqueueFlow([
      { ref: "gate", type: "approval" },
      { ref: "sum", type: "sum", after: { parts: ["gate"] } },
    ]);
    expect(await problemOf(await call(`/v1/flows/${made.flow_id}`, { method: "DELETE" }))).toMatchObject({
      status: 409,
      detail: expect.stringContaining("has not ended"),
    });
    const cancelled = await (await post(`/v1/flows/${made.flow_id}/cancel`)).json();
    expect(cancelled).toMatchObject({
      status: "cancelled",
      cancelled: 2,
      counts: { cancelled: 2, blocked: 0 },
    });

    const outside = await enqueueFlow([part(1)]);
    await quiet();
    const waiting = await enqueue({
      type: "echo",
      after: [made.jobs[0]?.job_id, await enqueue({ type: "approval" })],
    });
    expect((await call(`/v1/flows/${outside.flow_id}`, { method: "DELETE" })).status).toBe(200);
    expect((await call(`/v1/flows/${outside.flow_id}`)).status).toBe(404);
    await fire();
    expect(await look(waiting)).toMatchObject({ status: "dead", dead_reason: "blocker" });
  });

  test("that does not exist is a 404", async () => {
    for (const path of [unknownId, "no-id"]) {
      expect((await call(`/v1/flows/${path}`)).status).toBe(404);
      expect((await post(`/v1/flows/${path}/cancel`)).status).toBe(404);
      expect((await call(`/v1/flows/${path}`, { method: "DELETE" })).status).toBe(404);
      expect((await call(`/v1/chains/${path}`)).status).toBe(404);
    }
  });
});

describe("a chain", () => {
  test("goes on with `next`, and its output is the last one's", async () => {
    const id = await enqueue({ type: "relay", payload: { hops: 3 } });
    const waits = await enqueue({ type: "echo", payload: {}, after: [id] });
    await quiet();
    for (let n = 0; n < 4; n++) await fire();
    const chain = chainResponse.parse(await (await call(`/v1/chains/${id}`)).json());
    expect(chain).toMatchObject({ chain_id: id, status: "completed", output: { done: true }, total: 4 });
    expect(chain.jobs.map(({ payload }) => payload)).toEqual([3, 2, 1, 0].map((hops) => ({ hops })));
    expect(chain.jobs.map(({ chain: place }) => place?.index)).toEqual([0, 1, 2, 3]);
    expect(await look(waits)).toMatchObject({ status: "completed" });
    const last = chain.jobs[3]?.job_id ?? "";
    expect(chainResponse.parse(await (await call(`/v1/chains/${last}`)).json()).chain_id).toBe(id);
  });

  test("goes on by a puller's completion, once, however often that is sent", async () => {
    const id = await enqueue({ type: "approval" });
    const { jobs } = claimResponse.parse(
      await (await post("/v1/claims", { worker_id: "w", types: ["approval"] })).json(),
    );
    const settlement = { lease: jobs[0]?.lease, next: { type: "approval", payload: { n: 1 } } };
    expect((await post(`/v1/jobs/${id}/complete`, settlement)).status).toBe(200);
    expect((await post(`/v1/jobs/${id}/complete`, settlement)).status).toBe(409);
    const chain = chainResponse.parse(await (await call(`/v1/chains/${id}`)).json());
    expect(chain).toMatchObject({ total: 2, status: "pending" });
    const wrong = { lease: jobs[0]?.lease, next: { type: "fatal", payload: {} } };
    expect(await problemOf(await post(`/v1/jobs/${id}/complete`, wrong))).toMatchObject({
      status: 400,
      errors: [{ path: "next.payload.message" }],
    });
  });
});

describe("a resolve", () => {
  test("completes a blocked job, and is refused for one that has ended", async () => {
    const gate = await enqueue({ type: "approval" });
    const id = await enqueue({ type: "approval", after: [gate] });
    expect((await post(`/v1/jobs/${id}/resolve`, { output: "yes" })).status).toBe(200);
    expect(await look(id)).toMatchObject({ status: "completed", output: "yes" });
    expect((await post(`/v1/jobs/${id}/resolve`, { output: "no" })).status).toBe(409);
    expect((await post(`/v1/jobs/${unknownId}/resolve`)).status).toBe(404);
  });
});

describe("a signal", () => {
  test("counts once for each name and key", async () => {
    const send = async (key: string) => {
      const response = await post("/v1/signals/go", { key, payload: { by: "ann" } });
      return [response.status, ((await response.json()) as { deduplicated: boolean }).deduplicated];
    };
    expect([await send("a"), await send("a"), await send("b")]).toEqual([
      [202, false],
      [200, true],
      [202, false],
    ]);
    expect((await post("/v1/signals/No", { key: "a" })).status).toBe(400);
    expect((await post("/v1/signals/go", { key: "" })).status).toBe(400);
  });
});
