// A search for jobs: its filters, its call of search_jobs (migrations/functions/search.sql), and its answer.
import type { Job, JobStatus } from "./job.ts";
import { type SQL, sql } from "./sql/sql.ts";
import type { Row, Statement } from "./sql/statement.ts";

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

/** Without jobs there is one row, with nothing but how far the search came. */
export function searchOf(schema: SQL, filter: JobFilter): SQL {
  return sql`${schema}.search_jobs(
    ${filter.types ? filter.types : null}::text[],
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

export function toPage<Listed extends { id: string }>(
  decode: (row: Row) => Listed,
): Statement<JobPage<Listed>>["decode"] {
  return (rows) => ({
    jobs: rows.map(decode).filter(({ id }: { id: string | null }) => id !== null),
    next: (rows[0]?.searched_to ?? null) as string | null,
  });
}
