// A job as the view `jobs` shows it, in the columns of a row or in the JSON answer of a statement that changed it.
import type { DeadReason, Job, JobError, JobStatus, Json, Payload } from "./job.ts";

/** What a statement about one job answers. */
export interface ChangedJob {
  /** False if the job's state does not allow the change, or if the lease is lost. */
  applied: boolean;
  /** As it is now, with the stacks and causes of its errors. */
  job: Job;
  /** Null unless the job is processing. */
  leaseExpiresAt: Date | null;
}

/** The answer of answer_with_job (migrations/functions/jobs.sql). Null if there is no such job. */
export function decodeChangedJob(answer: unknown): ChangedJob | null {
  if (answer === null) return null;
  const { applied, job } = answer as { applied: boolean; job: Record<string, unknown> };
  return { applied, job: decodeJob(job), leaseExpiresAt: timeOrNull(job.lease_expires_at) };
}

export function decodeJob(row: Record<string, unknown>): Job {
  return {
    id: row.id as string,
    type: row.type as string,
    queue: row.queue as string,
    status: row.status as JobStatus,
    priority: Number(row.priority),
    payload: row.payload as Payload,
    attempts: Number(row.attempts),
    maxAttempts: Number(row.max_attempts),
    createdAt: toTime(row.created_at),
    scheduledAt: toTime(row.scheduled_at),
    startedAt: timeOrNull(row.started_at),
    completedAt: timeOrNull(row.completed_at),
    expiresAt: toTime(row.expires_at),
    errors: row.errors as JobError[],
    deadReason: row.dead_reason as DeadReason | null,
    partitionKey: row.partition_key as string | null,
    tags: (row.tags as string[] | null) ?? [],
    idempotencyKey: row.idempotency_key as string | null,
    traceparent: row.traceparent as string | null,
    output: row.output as Json,
  };
}

/** Milliseconds in a column, ISO 8601 in JSON. */
function toTime(value: unknown): Date {
  return new Date(value as number | string);
}

function timeOrNull(value: unknown): Date | null {
  return value === null ? null : toTime(value);
}
