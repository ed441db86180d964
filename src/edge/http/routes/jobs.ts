// The producers' routes: enqueue one job or many, get or list jobs, cancel one.
import * as z from "zod";
import type {
  BatchResponse,
  CancelRequestedResponse,
  EnqueueResponse,
  ListResponse,
  listQuery,
} from "../../../contract/jobs.ts";
import { SluiceError } from "../../../core/errors.ts";
import { timeOfId } from "../../../core/job.ts";
import type { JobFilter } from "../../../core/job-search.ts";
import type { EnqueuedJob } from "../../../core/sql/enqueue.ts";
import * as sql from "../../../core/sql/index.ts";
import { accept, findIdempotencyKey, startDrainsOf, toNewJob } from "../accept-jobs.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import { toFoundJobResponse, toJobResponse } from "../codec/job-response.ts";
import { checkMayUse, refuseOwnType } from "../guards/auth.ts";
import { changeJobInPath, findJobInPath } from "../job-in-path.ts";
import type { Handlers } from "../operation-routes.ts";

export const enqueueJob: Handlers["enqueueJob"] = async (context, { body: request }) => {
  const idempotencyKey = findIdempotencyKey(context, request);
  const [job] = await accept(context, [{ ...toNewJob(context, request, []), idempotencyKey }]);
  const isCreated = !job.deduplicated && (job.outcome ?? "created") === "created";
  return context.json(toEnqueueResponse(job), isCreated ? 201 : 200, {
    location: `/v1/jobs/${job.id}`,
  });
};

export const enqueueJobs: Handlers["enqueueJobs"] = async (context, { body: request }) => {
  const newJobs = request.jobs.map((job, index) => toNewJob(context, job, ["jobs", String(index)]));
  const body: BatchResponse = { jobs: (await accept(context, newJobs)).map(toEnqueueResponse) };
  return context.json(body, 201);
};

export const listJobs: Handlers["listJobs"] = async (context, { query }) => {
  const { type } = query;
  if (type) checkMayUse(context, type);
  const types = type ? [type] : context.get("caller").types;
  const { jobs, next } = await context.env.ports.db.run(sql.listJobs({ ...toFilter(query), types }));
  const body: ListResponse = {
    jobs: jobs.map(toJobResponse),
    next_cursor: next && encodeCursor(next),
    ...(next && jobs.length < query.limit && { searched_back_to: timeOfId(next).toISOString() }),
  };
  return context.json(body);
};

export const getJob: Handlers["getJob"] = async (context) => {
  const job = await findJobInPath(context);
  return context.json(toFoundJobResponse(job, context.env.ports.registry.find(job.type)));
};

export const cancelJob: Handlers["cancelJob"] = async (context, { body: { running } }): Promise<Response> => {
  const { types } = context.get("caller");
  const { applied, job, cancelRequested } = await changeJobInPath(context, (id) =>
    sql.cancel(id, { types, running }),
  );
  refuseOwnType(job.type);
  if (cancelRequested) {
    const body: CancelRequestedResponse = { ...toJobResponse(job), cancel_requested: true };
    return context.json(body, 202);
  }
  if (!applied)
    throw new SluiceError("conflict", `the job is ${job.status}; only a pending job can be cancelled`);
  return context.json(toJobResponse(job));
};

/** The jobs that wait for it may be of its queue, so a drain starts there. */
export const resolveJob: Handlers["resolveJob"] = async (context, { body: { output } }) => {
  const { types } = context.get("caller");
  const { applied, job } = await changeJobInPath(context, (id) => sql.resolve(id, { output, types }));
  refuseOwnType(job.type);
  if (!applied)
    throw new SluiceError(
      "conflict",
      `the job is ${job.status}; only a pending or blocked job can be resolved`,
    );
  startDrainsOf(context, [job.queue]);
  return context.json(toJobResponse(job));
};

function toEnqueueResponse(job: EnqueuedJob): EnqueueResponse {
  return {
    job_id: job.id,
    status: job.status,
    type: job.type,
    queue: job.queue,
    scheduled_at: job.scheduledAt.toISOString(),
    deduplicated: job.deduplicated,
    ...(job.outcome && { outcome: job.outcome, replaced_job_id: job.replacedId }),
  };
}

function toFilter(query: z.output<typeof listQuery>): Omit<JobFilter, "types"> {
  const { cursor, status, queue, tag, limit, since, until } = query;
  return {
    ...{ status, queue, tag, limit },
    partitionKey: query.partition_key,
    fairKey: query.fair_key,
    idempotencyKey: query.idempotency_key,
    since: since === undefined ? undefined : new Date(since),
    until: until === undefined ? undefined : new Date(until),
    // Any 128 bits: a search may stop between two jobs.
    before: cursor === undefined ? undefined : decodeCursor(cursor, z.guid()),
  };
}
