// Why a job waits, as GET /v1/jobs/:id says it, in workerd.
import { afterEach, expect, test } from "vitest";
import * as z from "zod";
import { jobResponse, listResponse } from "../../src/contract/jobs.ts";
import { defineJob, definePulledJob } from "../../src/index.ts";
import { adminCallsOf } from "./admin-calls.ts";
import { useDeployment } from "./deployment.ts";

const payload = z.object({});
const deployment = useDeployment([
  defineJob("note", { payload, run: () => {} }),
  definePulledJob("pulled", { payload, concurrency: 1 }),
]);
const { enqueueMany, look, query } = deployment;
const { ask, send } = adminCallsOf(deployment);
afterEach(async () => {
  await query("truncate sluice.pause");
  await deployment.quiet();
});

const waitingFor = async (id = "") => (await look(id)).waiting_for;
const enqueueOne = async (type: string) => (await enqueueMany(type, [{}]))[0] ?? "";

test("a delayed job waits for its time", async () => {
  const id = await deployment.enqueue({ type: "note", scheduled_at: "2050-01-02T03:04:05Z" });
  expect(await waitingFor(id)).toEqual({
    kind: "time",
    detail: "It is not due before 2050-01-02 03:04:05 UTC.",
    job_ids: [],
  });
});

test("a job of a paused queue waits for its resume", async () => {
  const id = await enqueueOne("note");
  await send("POST /v1/admin/queues/default/pause");
  expect(await waitingFor(id)).toMatchObject({
    kind: "pause",
    detail: expect.stringMatching(/^The queue "default" has been paused since .* UTC\.$/),
  });
});

test("the limits of the deployment's types count", async () => {
  await enqueueMany("pulled", [{}, {}]);
  const { jobs } = (await (
    await send("POST /v1/claims", { body: { worker_id: "w", types: ["pulled"] } })
  ).json()) as { jobs: { job_id: string }[] };
  expect(jobs).toHaveLength(1);
  const [waiting] = (await ask("GET /v1/jobs?status=pending", listResponse)).jobs;
  expect(await waitingFor(waiting?.job_id)).toEqual({
    kind: "limit",
    detail: 'The type "pulled" runs at most 1 job at one time, and as many are running.',
    job_ids: [],
  });
  expect(await waitingFor(jobs[0]?.job_id)).toBeNull();
});

test.each([
  ["note", "Nothing holds it. A drain takes it when its turn comes."],
  ["pulled", "Nothing holds it. A puller takes it when its turn comes."],
  ["nobody", 'Nothing holds it, but this deployment has no job type "nobody", so no drain takes it.'],
])("a due job of the type %s waits for its turn", async (type, detail) => {
  expect(await waitingFor(await enqueueOne(type))).toEqual({ kind: "turn", detail, job_ids: [] });
});

test("a job that has ended waits for nothing, and lists and changes do not say why a job waits", async () => {
  const id = await enqueueOne("note");
  const [listed] = (await ask("GET /v1/jobs", listResponse)).jobs;
  const cancelled = await ask(`POST /v1/jobs/${id}/cancel`, jobResponse);
  for (const job of [listed, cancelled]) expect(job).not.toHaveProperty("waiting_for");
  expect(await waitingFor(id)).toBeNull();
});
