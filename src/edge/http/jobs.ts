// The producers' routes: enqueue a job, look at a job.
import { Hono } from "hono";
import * as z from "zod";
import {
  type EnqueueRequest,
  type EnqueueResponse,
  enqueueRequest,
  type JobResponse,
} from "../../contract/jobs.ts";
import { SluiceError } from "../../core/errors.ts";
import type { Job, NewJob } from "../../core/job.ts";
import { findJob } from "../../core/sql/index.ts";
import type { JobDefinition } from "../../jobs/define.ts";
import { enqueue } from "../../queue/enqueue.ts";
import type { AppEnv } from "./app.ts";
import { checkMayEnqueue, requireRole } from "./auth.ts";
import { readBody } from "./body.ts";

const maxPayloadBytes = 64 * 1024;
/** The payload's limit and room for the other fields. */
const maxBodyBytes = maxPayloadBytes + 16 * 1024;

export const jobs = new Hono<AppEnv>();
jobs.use(requireRole("producer"));

jobs.post("/", async (context) => {
  const request = await readBody(context, enqueueRequest, { maxBytes: maxBodyBytes });
  checkMayEnqueue(context, request.type);
  const definition = context.env.registry.find(request.type);
  if (!definition) throw new SluiceError("forbidden", `the type "${request.type}" is not registered`);
  checkPayload(definition, request.payload);
  const key = context.req.header("idempotency-key") ?? request.idempotency_key;
  const traceparent = context.req.header("traceparent") ?? null;
  const job = await enqueue(context.env.queue, {
    ...newJob(request, definition),
    idempotencyKey: bare(key),
    traceparent,
  });
  context.env.nudge(job.queue);
  const body: EnqueueResponse = {
    job_id: job.id,
    status: job.status,
    type: job.type,
    queue: job.queue,
    scheduled_at: job.scheduledAt.toISOString(),
    deduplicated: job.deduplicated,
  };
  return context.json(body, job.deduplicated ? 200 : 201, { location: `/v1/jobs/${job.id}` });
});

jobs.get("/:id", async (context) => {
  const id = z.uuid().safeParse(context.req.param("id"));
  const [job] = id.success ? await context.env.queue.db.run(findJob(id.data)) : [];
  if (!job) throw new SluiceError("not_found", `there is no job ${context.req.param("id")}`);
  return context.json(jobResponseOf(job));
});

function checkPayload(definition: JobDefinition, payload: EnqueueRequest["payload"]): void {
  const bytes = new TextEncoder().encode(JSON.stringify(payload)).byteLength;
  if (bytes > maxPayloadBytes) {
    throw new SluiceError("body_too_large", `the payload has ${bytes} bytes, ${maxPayloadBytes} are allowed`);
  }
  const faults = definition.faultsOf(payload).map(({ path, message }) => ({
    path: path ? `payload.${path}` : "payload",
    message,
  }));
  if (faults.length > 0) {
    throw new SluiceError("request_invalid", `the payload does not fit the type "${definition.type}"`, {
      faults,
    });
  }
}

/** The header's draft wants a quoted string; a bare one is taken too. */
function bare(key: string | null): string | null {
  return key?.replace(/^"(.*)"$/, "$1") ?? null;
}

function newJob(request: EnqueueRequest, definition: JobDefinition): NewJob {
  return {
    type: request.type,
    payload: request.payload,
    queue: request.queue ?? definition.queue,
    priority: request.priority,
    maxAttempts: request.max_attempts ?? definition.maxAttempts,
    delaySeconds: request.delay_seconds,
    scheduledAt: request.scheduled_at ? new Date(request.scheduled_at) : null,
    expiresAt: request.expires_at ? new Date(request.expires_at) : null,
    partitionKey: request.partition_key,
    tags: request.tags,
  };
}

function jobResponseOf(job: Job): JobResponse {
  return {
    job_id: job.id,
    type: job.type,
    queue: job.queue,
    status: job.status,
    priority: job.priority,
    payload: job.payload,
    attempts: job.attempts,
    max_attempts: job.maxAttempts,
    created_at: job.createdAt.toISOString(),
    scheduled_at: job.scheduledAt.toISOString(),
    started_at: job.startedAt?.toISOString() ?? null,
    completed_at: job.completedAt?.toISOString() ?? null,
    expires_at: job.expiresAt.toISOString(),
    error: job.errors.at(-1)?.message ?? null,
    errors: job.errors,
    dead_reason: job.deadReason,
    partition_key: job.partitionKey,
    tags: job.tags,
    idempotency_key: job.idempotencyKey,
    output: job.output,
  };
}
