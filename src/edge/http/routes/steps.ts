// What durable steps of a puller's job need: to store values, to start children, and to look whether what they wait for has come.
// All of them show the job's lease, and extend it.
import type { Context } from "hono";
import type { ChildrenResponse, StepsResponse, WaitedResponse } from "../../../contract/work.ts";
import type { NewStep } from "../../../core/job.ts";
import { checkpointOne, findOutcomes, findSignal } from "../../../core/sql/index.ts";
import { accept, badField, toNewJob } from "../accept-jobs.ts";
import type { AppEnv } from "../app-env.ts";
import { decodeLease, leaseLost } from "../codec/lease.ts";
import { jobIdInPath } from "../job-in-path.ts";
import type { Handlers } from "../operation-routes.ts";

export const storeSteps: Handlers["storeSteps"] = async (context, { body: request }): Promise<Response> => {
  const { id, answer } = await checkpointInPath(context, request, request.steps);
  const body: StepsResponse = {
    job_id: id,
    steps: answer.steps,
    cancel_requested: answer.cancelRequested,
    now: new Date(answer.nowMs).toISOString(),
  };
  return context.json(body);
};

/** If the lease is lost meanwhile, the next holder finds the same children by their keys. */
export const startChildren: Handlers["startChildren"] = async (context, { body: request }) => {
  const id = jobIdInPath(context);
  const jobs = request.jobs.map(({ idempotency_key: key, ...job }, index) => {
    const path = ["jobs", String(index)];
    if (!key.startsWith(`${id}:`))
      throw badField([...path, "idempotency_key"].join("."), "must begin with the job's id and a colon");
    return { ...toNewJob(context, job, path), idempotencyKey: key };
  });
  await checkpointInPath(context, request, []);
  const enqueued = await accept(context, jobs);
  const body: ChildrenResponse = { job_ids: enqueued.map((job) => job.id) };
  return context.json(body);
};

export const findWaited: Handlers["findWaited"] = async (context, { body: request }) => {
  const { db } = context.env.ports;
  await checkpointInPath(context, request, []);
  const { signal, jobs } = request;
  const ends = jobs.length > 0 ? await db.run(findOutcomes(jobs)) : [];
  const body: WaitedResponse = {
    signal: signal ? await db.run(findSignal(signal.name, signal.key)) : null,
    jobs: ends.map(({ id, ...end }) => ({ job_id: id, ...end })),
  };
  return context.json(body);
};

async function checkpointInPath(
  context: Context<AppEnv>,
  { lease, lease_seconds: seconds }: { lease: string; lease_seconds: number },
  steps: readonly NewStep[],
) {
  const id = jobIdInPath(context);
  const job = { id, leaseKey: decodeLease(lease).key };
  const answer = await context.env.ports.db.run(checkpointOne(job, steps, { seconds }));
  if (!answer) throw leaseLost(id);
  return { id, answer };
}
