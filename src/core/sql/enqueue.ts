// enqueue: 1 to 10,000 jobs in one statement, all or none. See migrations/functions/enqueue.sql.
import { sql } from "drizzle-orm";
import type { JobStatus, NewJob } from "../job.ts";
import type { Statement } from "./statement.ts";

export interface EnqueuedJob {
  id: string;
  status: JobStatus;
  type: string;
  queue: string;
  scheduledAt: Date;
  deduplicated: boolean;
}

export function enqueue(jobs: readonly NewJob[]): Statement<EnqueuedJob> {
  return {
    name: "enqueue",
    isRepeatable: jobs.every((job) => job.idempotencyKey),
    build: (schema) => sql`
      select id, status, type, queue, scheduled_at, deduplicated
      from ${schema}.enqueue_jobs(${JSON.stringify(jobs.map(toRow))}::jsonb)`,
    decode: (row) => ({
      id: row.id as string,
      status: row.status as JobStatus,
      type: row.type as string,
      queue: row.queue as string,
      scheduledAt: row.scheduled_at as Date,
      deduplicated: row.deduplicated as boolean,
    }),
  };
}

function toRow(job: NewJob) {
  return {
    type: job.type,
    payload: job.payload,
    queue: job.queue,
    priority: job.priority,
    max_attempts: job.maxAttempts,
    delay_seconds: job.delaySeconds,
    scheduled_at: job.scheduledAt,
    expires_at: job.expiresAt,
    idempotency_key: job.idempotencyKey,
    partition_key: job.partitionKey,
    traceparent: job.traceparent,
    tags: job.tags,
  };
}
