// A claimed job as a puller sees it.
import type { ClaimRequest, ClaimResponse } from "../../../contract/work.ts";
import type { JobBlockers } from "../../../core/blocker-row.ts";
import { type ClaimedJob, generationOf, type Json } from "../../../core/job.ts";
import { encodeLease } from "./lease.ts";

export function toClaimedJobResponse(
  job: ClaimedJob,
  { queue, blockers }: Pick<ClaimRequest, "queue"> & { blockers: JobBlockers },
): ClaimResponse["jobs"][number] {
  const { id, leaseKey: key, type, attempt, isProbe, isLinked } = job;
  return {
    job_id: id,
    type,
    queue,
    payload: job.payload,
    priority: job.priority,
    attempt,
    max_attempts: job.maxAttempts,
    lease: encodeLease({ key, type, attempt, isProbe, isLinked }),
    lease_generation: generationOf(key),
    lease_expires_at: job.leaseExpiresAt.toISOString(),
    created_at: job.createdAt.toISOString(),
    traceparent: job.traceparent,
    partition_key: job.partitionKey,
    fair_key: job.fairKey,
    run: job.runKey,
    tags: job.tags,
    errors: job.errors,
    blockers: toBlockers(blockers),
    schedule: job.schedule,
  };
}

function toBlockers(blockers: JobBlockers): ClaimResponse["jobs"][number]["blockers"] {
  const slots = Object.entries(blockers);
  if (slots.length === 0) return null;
  return Object.fromEntries(
    slots.map(([slot, list]) => [
      slot,
      list.map(({ jobId, status, output }) => ({ job_id: jobId, status, output: output as Json })),
    ]),
  );
}
