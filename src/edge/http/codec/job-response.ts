// A job as the API shows it.
import type { JobResponse } from "../../../contract/jobs.ts";
import type { Job } from "../../../core/job.ts";
import type { FoundJob } from "../../../core/job-row.ts";
import { describeWaiting } from "../../../core/policy/waiting-for.ts";
import type { JobType } from "../../../queue/ports.ts";

/** With why it waits, and its durable steps. `definition` is that of its type, if this deployment has it. */
export function toFoundJobResponse(job: FoundJob, definition: JobType | undefined): JobResponse {
  const takenBy = definition ? (definition.work.kind === "pulled" ? "puller" : "drain") : null;
  const waiting = job.waitingFor && describeWaiting({ ...job, takenBy }, job.waitingFor);
  return {
    ...toJobResponse(job),
    waiting_for: waiting && { kind: waiting.kind, detail: waiting.detail, job_ids: waiting.jobIds },
    steps: job.steps.map(({ startedAt, endedAt, ...step }) => ({
      ...step,
      started_at: startedAt?.toISOString() ?? null,
      ended_at: endedAt?.toISOString() ?? null,
    })),
  };
}

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
    worker: job.worker,
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
    chain: job.chainId === null ? null : { chain_id: job.chainId, index: job.chainIndex ?? 0 },
    flow_id: job.flowId,
    culprit: job.culprit,
    superseded_by: job.supersededBy,
    schedule: job.schedule,
  };
}
