// find shown job, list shown jobs: jobs for the eyes of people. Payload and output are text, as Postgres writes them, because
// JavaScript would round large numbers. See jobs.ts for the same jobs as values.
import type { Job } from "../job.ts";
import { decodeListed, decodeReason, type FoundJob, listedColumns } from "../job-row.ts";
import { type JobFilter, type JobPage, searchOf, toPage } from "../job-search.ts";
import { type LimitedType, packLimits } from "../type-limits.ts";
import { listColumns } from "./columns.ts";
import { type SQL, sql } from "./sql.ts";
import { optional, type Statement, time, timeOrNull } from "./statement.ts";

const { errors: _, ...shownColumns } = listedColumns;

export interface ShownJob extends Omit<FoundJob, "payload" | "output" | "steps"> {
  /** Null if the type hides it. */
  payloadText: string | null;
  /** Null if there is none, or if the type hides it. */
  outputText: string | null;
  /** Of a dead, cancelled or discarded job: since when. */
  closedAt: Date | null;
  /** Of a processing job. */
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
             case when ${isShown(hiddenTypes)} then jsonb_pretty(output) end as output_text,
             ${time("closed_at")}, ${time("lease_expires_at")}
      from ${schema}.find_job(${id}::uuid)`,
    decode: optional((row) => ({
      ...decodeListed(row),
      waitingFor: decodeReason(row.waiting_for),
      payloadText: row.payload_text as string | null,
      outputText: row.output_text as string | null,
      closedAt: timeOrNull(row.closed_at),
      leaseExpiresAt: timeOrNull(row.lease_expires_at),
    })),
  };
}

/** A payload that is not shown is not even read. */
function isShown(hiddenTypes: readonly string[]): SQL {
  return sql`type <> all(${hiddenTypes}::text[])`;
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
      from ${searchOf(schema, filter)}`,
    decode: toPage((row) => ({ ...decodeListed(row), payloadText: row.payload_text as string | null })),
  };
}
