// The producers' routes: enqueue one job or many, get or list jobs, cancel one.
import type { Context } from "hono";
import * as z from "zod";
import type {
  BatchResponse,
  CancelRequestedResponse,
  EnqueueRequest,
  EnqueueResponse,
  ListResponse,
} from "../../../contract/jobs.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { NewJob } from "../../../core/job.ts";
import { fromFields, jobLimits } from "../../../core/job-options.ts";
import type { EnqueuedJob } from "../../../core/sql/enqueue.ts";
import * as sql from "../../../core/sql/index.ts";
import { type Enqueued, enqueueAll } from "../../../queue/enqueue.ts";
import type { AppEnv } from "../app-env.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import { toFoundJobResponse, toJobResponse } from "../codec/job-response.ts";
import { refuseBadPayload } from "../codec/payload.ts";
import { checkMayEnqueue, checkMayUse, refuseOwnType } from "../guards/auth.ts";
import { checkDepth } from "../guards/depth-limit.ts";
import { changeJobInPath, findJobInPath } from "../job-in-path.ts";
import type { Handlers } from "../operation-routes.ts";

/** The most drains that one request starts. The cron drains the other queues. */
const maxNudges = 5;

export const enqueueJob: Handlers["enqueueJob"] = async (context, { body: request }) => {
  const idempotencyKey = findIdempotencyKey(context, request);
  const [job] = await accept(context, [{ ...toNewJob(context, request, []), idempotencyKey }]);
  return context.json(toEnqueueResponse(job), job.deduplicated ? 200 : 201, {
    location: `/v1/jobs/${job.id}`,
  });
};

export const enqueueJobs: Handlers["enqueueJobs"] = async (context, { body: request }) => {
  const newJobs = request.jobs.map((job, index) => toNewJob(context, job, ["jobs", String(index)]));
  const body: BatchResponse = { jobs: (await accept(context, newJobs)).map(toEnqueueResponse) };
  return context.json(body, 201);
};

export const listJobs: Handlers["listJobs"] = async (context, { query }) => {
  const { cursor, type, ...filter } = query;
  if (type) checkMayUse(context, type);
  const before = cursor === undefined ? undefined : decodeCursor(cursor, z.uuid());
  const jobs = await context.env.ports.db.run(
    sql.listJobs({ ...filter, types: type ? [type] : context.get("caller").types, before }),
  );
  const last = jobs.length === filter.limit ? jobs.at(-1) : undefined;
  const body: ListResponse = {
    jobs: jobs.map(toJobResponse),
    next_cursor: last ? encodeCursor(last.id) : null,
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

/** Enqueues all jobs or none, in one statement. Then starts a drain for each queue that got a due job. */
async function accept<const Jobs extends readonly NewJob[]>(
  context: Context<AppEnv>,
  newJobs: Jobs,
): Promise<Enqueued<Jobs>> {
  const waitUntil = (work: Promise<unknown>) => context.executionCtx.waitUntil(work);
  checkDepth({ ...context.env, waitUntil }, new Set(newJobs.map((job) => job.queue ?? "default")));
  const enqueued = await enqueueAll(context.env.ports, newJobs);
  const dueNow = newJobs.filter((job) => !job.delaySeconds && !job.scheduledAt);
  const names = new Set(dueNow.map((job) => job.queue ?? "default"));
  for (const name of [...names].slice(0, maxNudges)) context.env.nudge(name);
  return enqueued;
}

/** Checks a request against the API's rules and its type. `path` is the place of the request in the body. */
function toNewJob(context: Context<AppEnv>, request: EnqueueRequest, path: readonly string[]): NewJob {
  checkMayEnqueue(context, request.type);
  const definition = context.env.ports.registry.find(request.type);
  if (!definition) throw unknownType(request.type);
  refuseBadPayload(definition, request.payload, [...path, "payload"]);
  checkTimes(context, request, path);
  return {
    ...fromFields(request),
    type: request.type,
    payload: request.payload,
    queue: request.queue ?? definition.queue,
    maxAttempts: request.max_attempts ?? definition.maxAttempts,
    traceparent: context.req.header("traceparent"), // the database drops one that is malformed
  };
}

function unknownType(type: string): SluiceError {
  const cure = "add it to sluice({ jobs }), deploy, and check GET /v1/admin/job-types";
  return new SluiceError("type_unknown", `this deployment has no job type "${type}": ${cure}`);
}

/** The header does the same as the field. By its draft it is a quoted string, but one without quotes is accepted too. */
function findIdempotencyKey(
  context: Context<AppEnv>,
  { idempotency_key: field }: EnqueueRequest,
): string | null {
  const key = context.req.header("idempotency-key")?.replace(/^"(.*)"$/, "$1");
  if (key === undefined) return field;
  // Other bytes can be decoded in several ways, so different keys could become the same.
  if (!/^[ -~]{1,255}$/.test(key)) throw badField("idempotency-key", "must be 1 to 255 ASCII characters");
  if (field !== null && field !== key)
    throw badField("idempotency_key", "must be the same as the header Idempotency-Key");
  return key;
}

/** The database checks this too, by its own clock. But it does not know the field's place in the body. */
function checkTimes(context: Context<AppEnv>, request: EnqueueRequest, path: readonly string[]): void {
  const nowMs = context.env.ports.clock.nowMs();
  const { expires_at, scheduled_at } = request;
  if (expires_at && expires_at.getTime() <= nowMs)
    throw badField([...path, "expires_at"].join("."), "must be in the future");
  if (scheduled_at && scheduled_at.getTime() > nowMs + jobLimits.maxDelaySeconds * 1000)
    throw badField([...path, "scheduled_at"].join("."), "must be within 100 years");
}

function badField(path: string, message: string): SluiceError {
  return new SluiceError("request_invalid", `${path}: ${message}`, { faults: [{ path, message }] });
}

function toEnqueueResponse(job: EnqueuedJob): EnqueueResponse {
  return {
    job_id: job.id,
    status: job.status,
    type: job.type,
    queue: job.queue,
    scheduled_at: job.scheduledAt.toISOString(),
    deduplicated: job.deduplicated,
  };
}
