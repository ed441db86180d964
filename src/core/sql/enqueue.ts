// enqueue: one statement, one round trip, whatever the caller asked for.
import { sql } from "drizzle-orm";
import type { JobStatus, Payload } from "../job.ts";
import type { Statement } from "./statement.ts";

export interface NewJob {
  type: string;
  payload: Payload;
  queue: string;
  priority: number;
  maxAttempts: number;
  delaySeconds: number | null;
  scheduledAt: Date | null;
  expiresAt: Date | null;
  partitionKey: string | null;
  tags: string[];
}

export interface EnqueuedJob {
  id: string;
  status: JobStatus;
  type: string;
  queue: string;
  scheduledAt: Date;
}

export function enqueue(job: NewJob): Statement<EnqueuedJob> {
  return {
    name: "enqueue",
    isRepeatable: false,
    build: (schema) => sql`
      insert into ${schema}.job
        (type, payload, queue, priority, max_attempts, scheduled_at, expires_at, partition_key, tags)
      values (
        ${job.type}::text,
        ${JSON.stringify(job.payload)}::jsonb,
        ${job.queue}::text,
        ${job.priority}::smallint,
        ${job.maxAttempts}::smallint,
        coalesce(${job.scheduledAt?.toISOString() ?? null}::timestamptz,
                 now() + make_interval(secs => ${job.delaySeconds ?? 0}::float8)),
        coalesce(${job.expiresAt?.toISOString() ?? null}::timestamptz, now() + interval '30 days'),
        ${job.partitionKey}::text,
        ${sql.param(job.tags)}::text[]
      )
      returning id, status, type, queue, scheduled_at`,
    decode: (row) => ({
      id: row.id as string,
      status: row.status as JobStatus,
      type: row.type as string,
      queue: row.queue as string,
      scheduledAt: row.scheduled_at as Date,
    }),
  };
}
