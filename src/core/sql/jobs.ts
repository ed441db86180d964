// find job, find states, list jobs, list dead letters. See migrations/functions/jobs.sql and list.sql.
import { sql } from "drizzle-orm";
import type { DeadReason, Job, JobError, JobStatus } from "../job.ts";
import { decodeJob } from "../job-row.ts";
import { many, optional, type Statement, time } from "./statement.ts";

export interface JobFilter {
  /** If left out, all types. */
  types?: readonly string[] | null | undefined;
  status?: JobStatus | undefined;
  queue?: string | undefined;
  tag?: string | undefined;
  /** The last id of the previous page. */
  before?: string | undefined;
  limit: number;
}

const columns = sql`id, type, queue, status, priority, payload, attempts, max_attempts, ${time("created_at")},
             ${time("scheduled_at")}, ${time("started_at")}, ${time("completed_at")}, ${time("expires_at")},
             dead_reason, partition_key, tags, idempotency_key, traceparent, output`;

/** Includes the stacks and causes of its errors. */
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
  /** The last id of the previous page. */
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

/** The status of a job, and the errors of its attempts. */
export interface JobState {
  id: string;
  status: JobStatus;
  attempts: number;
  errors: Pick<JobError, "attempt" | "message">[];
}

export function findStates(ids: readonly string[]): Statement<JobState[]> {
  return {
    name: "find states",
    isRepeatable: true,
    build: (schema) => sql`
      select found.id, found.status, found.attempts, found.errors
      from unnest(${sql.param(ids)}::uuid[]) as asked(id)
      cross join lateral ${schema}.find_job(asked.id) as found`,
    decode: many((row) => ({
      id: row.id as string,
      status: row.status as JobStatus,
      attempts: Number(row.attempts),
      errors: row.errors as JobState["errors"],
    })),
  };
}
