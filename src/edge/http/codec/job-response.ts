// A job as the API shows it.
import type { JobResponse } from "../../../contract/jobs.ts";
import type { Job } from "../../../core/job.ts";

export function toJobResponse(job: Job): JobResponse {
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
    partition_bucket: job.partitionBucket,
    fair_key: job.fairKey,
    tags: job.tags,
    idempotency_key: job.idempotencyKey,
    output: job.output,
  };
}
