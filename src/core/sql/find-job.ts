// find job, list jobs, list dead letters: everything there is to know of jobs. See migrations/functions/jobs.sql
// and list.sql.
import { sql } from "drizzle-orm";
import type { DeadReason, Job, JobStatus } from "../job.ts";
import { decodeJob } from "../job-row.ts";
import { many, optional, type Statement, time } from "./statement.ts";

export interface JobFilter {
  /** Left out: all of them. */
  types?: readonly string[] | null | undefined;
  status?: JobStatus | undefined;
  queue?: string | undefined;
  tag?: string | undefined;
  /** The last id of the page before. */
  before?: string | undefined;
  limit: number;
}

const columns = sql`id, type, queue, status, priority, payload, attempts, max_attempts, ${time("created_at")},
             ${time("scheduled_at")}, ${time("started_at")}, ${time("completed_at")}, ${time("expires_at")},
             dead_reason, partition_key, tags, idempotency_key, traceparent, output`;

/** With the stacks and causes of its errors. */
export function findJob(id: string): Statement<Job | undefined> {
  return {
    name: "find job",
    isRepeatable: true,
    build: (schema) => sql`
      select ${columns}, ${schema}.errors_of(id, true) as errors
      from ${schema}.find_job(${id}::uuid)`,
    decode: optional(decodeJob),
  };
}

/** Newest first. */
export function listJobs(filter: JobFilter): Statement<Job[]> {
  return {
    name: "list jobs",
    isRepeatable: true,
    build: (schema) => sql`
      select ${columns}, errors
      from ${schema}.list_jobs(
        ${filter.types ? sql.param(filter.types) : null}::text[],
        ${filter.status ?? null}::text,
        ${filter.queue ?? null}::text,
        ${filter.tag ?? null}::text,
        ${filter.before ?? null}::uuid,
        ${filter.limit}::int
      )`,
    decode: many(decodeJob),
  };
}

export interface DeadLetterFilter {
  type?: string | undefined;
  reason?: DeadReason | undefined;
  /** The last id of the page before. */
  before?: string | undefined;
  limit: number;
}

/** Newest first. */
export function listDeadLetters(filter: DeadLetterFilter): Statement<Job[]> {
  return {
    name: "list dead letters",
    isRepeatable: true,
    build: (schema) => sql`
      select ${columns}, errors
      from ${schema}.list_dead_letters(
        ${filter.type ?? null}::text,
        ${filter.reason ?? null}::text,
        ${filter.before ?? null}::uuid,
        ${filter.limit}::int
      )`,
    decode: many(decodeJob),
  };
}
