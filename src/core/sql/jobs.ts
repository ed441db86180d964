// find job, find shown job, find states, list jobs, list shown jobs. See migrations/functions/jobs.sql, list.sql and waiting-for.sql.
import { type SQL, sql } from "drizzle-orm";
import type { Job, JobStatus } from "../job.ts";
import { decodeJob, decodeListed, jobColumns, listedColumns } from "../job-row.ts";
import type { WaitingReason } from "../policy/waiting-for.ts";
import { type LimitedType, packLimits } from "../type-limits.ts";
import { decodeColumns, listColumns } from "./columns.ts";
import type { jobs } from "./schema.ts";
import { many, optional, type Row, type Statement, time, timeOrNull } from "./statement.ts";

export interface JobFilter {
  /** If left out, all types. */
  types?: readonly string[] | null | undefined;
  status?: JobStatus | undefined;
  queue?: string | undefined;
  tag?: string | undefined;
  partitionKey?: string | undefined;
  fairKey?: string | undefined;
  idempotencyKey?: string | undefined;
  /** The job must have been created at this time or later. */
  since?: Date | undefined;
  /** The job must have been created before this time. */
  until?: Date | undefined;
  /** The `next` of the previous page. */
  before?: string | undefined;
  limit: number;
}

export interface JobPage<Listed = Job> {
  jobs: Listed[];
  /** The next page has the jobs before this id. Null: the search came to the end. */
  next: string | null;
}

const columns = listColumns(jobColumns);
const { errors: _, ...columnsButErrors } = jobColumns;
const { errors: __, ...shownColumns } = listedColumns;

export interface FoundJob extends Job {
  /** Null if the job is neither pending nor blocked. */
  waitingFor: WaitingReason | null;
}

/** Includes the stacks and causes of its errors, and why it waits. `types` are those of the deployment. */
export function findJob(
  id: string,
  { types = [] }: { types?: readonly LimitedType[] } = {},
): Statement<FoundJob | undefined> {
  return {
    name: "find job",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(columnsButErrors)}, ${schema}.errors_of(id, true) as errors,
             case when status in ('pending', 'blocked') then ${schema}.waiting_for(id, ${packLimits(types)}::jsonb) end as waiting_for
      from ${schema}.find_job(${id}::uuid)`,
    decode: optional((row) => ({ ...decodeJob(row), waitingFor: decodeReason(row.waiting_for) })),
  };
}

function decodeReason(json: unknown): WaitingReason | null {
  if (json === null) return null;
  const { job_ids, fair_key, is_isolated, ...rest } = json as Record<string, unknown>;
  const renamed = { jobIds: job_ids, fairKey: fair_key, isIsolated: is_isolated };
  const present = Object.entries(renamed).filter(([, value]) => value !== undefined);
  return { ...rest, ...Object.fromEntries(present) } as WaitingReason;
}

/** Those that are still there, in the order of the ids. */
export function findJobs(ids: readonly string[]): Statement<Job[]> {
  return {
    name: "find jobs",
    isRepeatable: true,
    build: (schema) => sql`
      select ${columns}
      from unnest(${sql.param(ids)}::uuid[]) with ordinality as requested(job_id, number)
      cross join lateral ${schema}.find_job(job_id)
      order by number`,
    decode: many(decodeJob),
  };
}

/** Newest first. A page may be shorter than its limit, or empty, although there are more: a search has its limits. */
export function listJobs(filter: JobFilter): Statement<JobPage> {
  return {
    name: "list jobs",
    isRepeatable: true,
    build: (schema) => sql`select searched_to, ${columns} from ${listed(schema, filter)}`,
    decode: toPage(decodeJob),
  };
}

export interface ShownJob extends Omit<FoundJob, "payload" | "output"> {
  /** Null if the type hides it. */
  payloadText: string | null;
  /** Null if there is none, or if the type hides it. */
  outputText: string | null;
  /** Of a dead, cancelled or discarded job: since when. */
  closedAt: Date | null;
  /** Of a processing job: who holds it, and until when. */
  worker: string | null;
  leaseExpiresAt: Date | null;
}

export function findShownJob(
  id: string,
  { types, hiddenTypes }: { types: readonly LimitedType[]; hiddenTypes: readonly string[] },
): Statement<ShownJob | undefined> {
  return {
    name: "find shown job",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(shownColumns)}, ${schema}.errors_of(id, true) as errors,
             case when status in ('pending', 'blocked') then ${schema}.waiting_for(id, ${packLimits(types)}::jsonb) end as waiting_for,
             case when ${isShown(hiddenTypes)} then jsonb_pretty(payload) end as payload_text,
             case when ${isShown(hiddenTypes)} then jsonb_pretty(output) end as output_text, worker,
             ${time("closed_at")}, ${time("lease_expires_at")}
      from ${schema}.find_job(${id}::uuid)`,
    decode: optional((row) => ({
      ...decodeListed(row),
      waitingFor: decodeReason(row.waiting_for),
      payloadText: row.payload_text as string | null,
      outputText: row.output_text as string | null,
      closedAt: timeOrNull(row.closed_at),
      worker: row.worker as string | null,
      leaseExpiresAt: timeOrNull(row.lease_expires_at),
    })),
  };
}

/** A payload that is not shown is not even read. */
function isShown(hiddenTypes: readonly string[]): SQL {
  return sql`type <> all(${sql.param(hiddenTypes)}::text[])`;
}

export interface ListedJob extends Omit<Job, "payload" | "output"> {
  /** The beginning of the payload. A whole page of payloads may be megabytes. Null if the type hides it. */
  payloadText: string | null;
}

export interface ShownFilter extends JobFilter {
  textLength: number;
  hiddenTypes: readonly string[];
}

/** As listJobs, newest first. */
export function listShownJobs({
  textLength,
  hiddenTypes,
  ...filter
}: ShownFilter): Statement<JobPage<ListedJob>> {
  return {
    name: "list shown jobs",
    isRepeatable: true,
    build: (schema) => sql`
      select searched_to, ${listColumns(listedColumns)},
             case when ${isShown(hiddenTypes)} then left(payload::text, ${textLength}::int) end as payload_text
      from ${listed(schema, filter)}`,
    decode: toPage((row) => ({ ...decodeListed(row), payloadText: row.payload_text as string | null })),
  };
}

/** Without jobs there is one row, with nothing but how far the search came. */
function listed(schema: SQL, filter: JobFilter): SQL {
  return sql`${schema}.search_jobs(
    ${filter.types ? sql.param(filter.types) : null}::text[],
    ${filter.status ?? null}::text,
    ${filter.queue ?? null}::text,
    ${filter.tag ?? null}::text,
    ${filter.partitionKey ?? null}::text,
    ${filter.fairKey ?? null}::text,
    ${filter.idempotencyKey ?? null}::text,
    ${filter.since?.toISOString() ?? null}::timestamptz,
    ${filter.until?.toISOString() ?? null}::timestamptz,
    ${filter.before ?? null}::uuid,
    ${filter.limit}::int
  ) as page
  left join lateral ${schema}.show_jobs(page.ids) as found on true`;
}

function toPage<Listed extends { id: string }>(
  decode: (row: Row) => Listed,
): Statement<JobPage<Listed>>["decode"] {
  return (rows) => ({
    jobs: rows.map(decode).filter(({ id }: { id: string | null }) => id !== null),
    next: (rows[0]?.searched_to ?? null) as string | null,
  });
}

/** The status of a job, and the errors of its attempts. */
export type JobState = Pick<typeof jobs.$inferSelect, "id" | "status" | "attempts" | "errors">;

export function findStates(ids: readonly string[]): Statement<JobState[]> {
  const { id, status, attempts, errors } = jobColumns;
  const stateColumns = { id, status, attempts, errors };
  return {
    name: "find states",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(stateColumns)}
      from unnest(${sql.param(ids)}::uuid[]) as requested_id
      cross join lateral ${schema}.find_job(requested_id)`,
    decode: many(decodeColumns(stateColumns)),
  };
}
