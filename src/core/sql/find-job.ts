// find job: everything there is to know of one job, by its id.
import { sql } from "drizzle-orm";
import type { DeadReason, Job, JobError, JobStatus, Json, Payload } from "../job.ts";
import type { Statement } from "./statement.ts";

export function findJob(id: string): Statement<Job> {
  return {
    name: "find job",
    isRepeatable: true,
    build: (schema) => sql`
      select id, type, queue, status, priority, payload, attempts, max_attempts, created_at, scheduled_at,
             started_at, completed_at, expires_at, errors, dead_reason, partition_key, tags, idempotency_key, output
      from ${schema}.job
      where id = ${id}::uuid`,
    decode: (row) => ({
      id: row.id as string,
      type: row.type as string,
      queue: row.queue as string,
      status: row.status as JobStatus,
      priority: Number(row.priority),
      payload: row.payload as Payload,
      attempts: Number(row.attempts),
      maxAttempts: Number(row.max_attempts),
      createdAt: row.created_at as Date,
      scheduledAt: row.scheduled_at as Date,
      startedAt: row.started_at as Date | null,
      completedAt: row.completed_at as Date | null,
      expiresAt: row.expires_at as Date,
      errors: row.errors as JobError[],
      deadReason: row.dead_reason as DeadReason | null,
      partitionKey: row.partition_key as string | null,
      tags: row.tags as string[],
      idempotencyKey: row.idempotency_key as string | null,
      output: row.output as Json,
    }),
  };
}
