// Flows, chains and signals: enqueue a flow, see how far it is, cancel or delete it, find a chain, send a signal.

import type { Context } from "hono";
import * as z from "zod";
import type {
  CancelFlowResponse,
  ChainResponse,
  FlowJobRequest,
  FlowMadeResponse,
  FlowResponse,
  FlowsResponse,
  SignalResponse,
} from "../../../contract/flows.ts";
import { SluiceError } from "../../../core/errors.ts";
import { timeOfId } from "../../../core/job.ts";
import { jobLimits } from "../../../core/job-options.ts";
import type { NewFlowJob } from "../../../core/sql/enqueue-flow.ts";
import type { Flow } from "../../../core/sql/flows.ts";
import * as sql from "../../../core/sql/index.ts";
import {
  badField,
  checkQueues,
  findIdempotencyKey,
  startDrains,
  startDrainsOf,
  toNewJob,
  toSlots,
} from "../accept-jobs.ts";
import type { AppEnv } from "../app-env.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import { toJobResponse } from "../codec/job-response.ts";
import { mayUse } from "../guards/auth.ts";
import type { Handlers } from "../operation-routes.ts";

/** The most jobs of a chain in one answer. */
const maxJobs = 100;

export const enqueueFlow: Handlers["enqueueFlow"] = async (context, { body }) => {
  const idempotencyKey = findIdempotencyKey(context, { idempotency_key: null });
  const flowJobs = body.jobs.map((job, index) => toFlowJob(context, job, ["jobs", String(index)]));
  const newJobs = flowJobs.map(({ job }) => job);
  checkQueues(context, newJobs);
  const made = await context.env.ports.db.run(sql.enqueueFlow(flowJobs, { idempotencyKey }));
  startDrains(context, newJobs);
  const answer: FlowMadeResponse = {
    flow_id: made.flowId,
    jobs: made.jobs.map(({ ref, id, status }) => ({ ref, job_id: id, status })),
  };
  return context.json(answer, made.deduplicated ? 200 : 201, { location: `/v1/flows/${made.flowId}` });
};

function toFlowJob(
  context: Context<AppEnv>,
  { ref, after, ...request }: FlowJobRequest,
  path: readonly string[],
): NewFlowJob {
  const job = toNewJob(context, request, path);
  const slots = context.env.ports.registry.find(request.type)?.after ?? {};
  return { ref, job, after: (toSlots(slots, after, path) ?? []) as NewFlowJob["after"] };
}

export const listFlows: Handlers["listFlows"] = async (context, { query: { cursor, ...filter } }) => {
  const before = cursor === undefined ? undefined : decodeCursor(cursor, z.uuid());
  const { flows, next } = await context.env.ports.db.run(sql.listFlows({ ...filter, before }));
  const body: FlowsResponse = {
    flows: flows.map(toFlowResponse),
    next_cursor: next && encodeCursor(next),
    ...(next && flows.length < filter.limit && { searched_back_to: timeOfId(next).toISOString() }),
  };
  return context.json(body);
};

export const getFlow: Handlers["getFlow"] = async (context, { query: { cursor, limit } }) => {
  const after = cursor === undefined ? undefined : decodeCursor(cursor, z.uuid());
  const flow = await findFlow(context);
  const jobs = await context.env.ports.db.run(sql.listFlowJobs(flow.flowId, { after, limit }));
  const last = jobs.length === limit ? jobs.at(-1) : undefined;
  const body: FlowResponse = {
    ...toFlowResponse(flow),
    jobs: jobs.filter(({ type }) => mayUse(context, type)).map(toJobResponse),
    next_cursor: last ? encodeCursor(last.id) : null,
  };
  return context.json(body);
};

export const cancelFlow: Handlers["cancelFlow"] = async (context) => {
  const id = flowIdInPath(context);
  const { actor, types } = context.get("caller");
  if (types)
    throw new SluiceError("forbidden", "this key is limited to some types, and a flow may have others");
  const cancelled = await context.env.ports.db.run(sql.cancelFlow(actor, id));
  if (cancelled === null) throw noSuchFlow(id);
  const body: CancelFlowResponse = { ...toFlowResponse(await findFlow(context)), cancelled };
  return context.json(body);
};

export const deleteFlow: Handlers["deleteFlow"] = async (context) => {
  const id = flowIdInPath(context);
  const { actor } = context.get("caller");
  const answer = await context.env.ports.db.run(sql.deleteFlow(actor, id));
  if (answer === null) throw noSuchFlow(id);
  if (answer === "running")
    throw new SluiceError("conflict", `the flow ${id} has not ended: wait for it, or cancel it`);
  if (answer === "waited_for")
    throw new SluiceError("conflict", `a job outside the flow ${id} waits for one of its jobs`);
  return context.json({ flow_id: id, deleted: true });
};

export const getChain: Handlers["getChain"] = async (context) => {
  const text = context.req.param("id") ?? "";
  const id = z.uuid().safeParse(text);
  const chain = id.success ? await context.env.ports.db.run(sql.findChain(id.data)) : null;
  const jobs = chain ? await context.env.ports.db.run(sql.findJobs(chain.jobs.slice(-maxJobs))) : [];
  if (!chain || !jobs.every(({ type }) => mayUse(context, type)))
    throw new SluiceError("not_found", `there is no chain ${text}`);
  const { chainId, status, output } = chain;
  return context.json({
    chain_id: chainId,
    status,
    output,
    total: chain.jobs.length,
    jobs: jobs.map(toJobResponse),
  } satisfies ChainResponse);
};

/** Nobody knows who waits for it, so drains of the deployment's queues start. */
export const sendSignal: Handlers["sendSignal"] = async (context, { body }) => {
  const name = context.req.param("name") ?? "";
  if (!jobLimits.namePattern.test(name)) throw badField("name", jobLimits.nameRule);
  const { ports } = context.env;
  const isFirst = await ports.db.run(sql.sendSignal({ name, ...body }));
  if (isFirst)
    startDrainsOf(
      context,
      ports.registry.all().map(({ queue }) => queue),
    );
  const answer: SignalResponse = { name, key: body.key, deduplicated: !isFirst };
  return context.json(answer, isFirst ? 202 : 200);
};

async function findFlow(context: Context<AppEnv>): Promise<Flow> {
  const id = flowIdInPath(context);
  const flow = await context.env.ports.db.run(sql.findFlow(id));
  if (!flow) throw noSuchFlow(id);
  return flow;
}

function flowIdInPath(context: Context<AppEnv>): string {
  const text = context.req.param("id") ?? "";
  const id = z.uuid().safeParse(text);
  if (!id.success) throw noSuchFlow(text);
  return id.data;
}

function noSuchFlow(id: string): SluiceError {
  return new SluiceError("not_found", `there is no flow ${id}`);
}

function toFlowResponse({ flowId, status, total, counts, createdAt }: Flow) {
  return { flow_id: flowId, status, total, counts, created_at: createdAt.toISOString() };
}
