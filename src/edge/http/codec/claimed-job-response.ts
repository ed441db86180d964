// A claimed job as a puller sees it.
import type { ClaimRequest, ClaimResponse } from "../../../contract/work.ts";
import { type ClaimedJob, generationOf } from "../../../core/job.ts";
import { encodeLease } from "./lease.ts";

export function toClaimedJobResponse(
  job: ClaimedJob,
  { queue }: Pick<ClaimRequest, "queue">,
): ClaimResponse["jobs"][number] {
  const { id, leaseKey: key, type, attempt, isProbe } = job;
  return {
    job_id: id,
    type,
    queue,
    payload: job.payload,
    priority: job.priority,
    attempt,
    max_attempts: job.maxAttempts,
    lease: encodeLease({ key, type, attempt, isProbe }),
    lease_generation: generationOf(key),
    lease_expires_at: job.leaseExpiresAt.toISOString(),
    created_at: job.createdAt.toISOString(),
    traceparent: job.traceparent,
    partition_key: job.partitionKey,
    fair_key: job.fairKey,
    run: job.runKey,
    tags: job.tags,
    errors: job.errors,
  };
}
