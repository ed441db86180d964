// find job, find states, list jobs. See migrations/functions/jobs.sql, list.sql and waiting-for.sql.
import type { Job } from "../job.ts";
import { decodeJob, decodeReason, type FoundJob, jobColumns } from "../job-row.ts";
import { type JobFilter, type JobPage, searchOf, toPage } from "../job-search.ts";
import { type StepRow, toJobSteps } from "../job-steps.ts";
import { type LimitedType, packLimits } from "../type-limits.ts";
import type { RowOf } from "./column.ts";
import { decodeColumns, listColumns } from "./columns.ts";
import type { jobs } from "./schema.ts";
import { sql } from "./sql.ts";
import { many, optional, type Statement } from "./statement.ts";

const columns = listColumns(jobColumns);
const { errors: _, ...columnsButErrors } = jobColumns;

/** Includes the stacks and causes of its errors, why it waits, and its steps. `types` are those of the deployment. */
export function findJob(
  id: string,
  { types = [] }: { types?: readonly LimitedType[] } = {},
): Statement<FoundJob | undefined> {
  return {
    name: "find job",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(columnsButErrors)}, ${schema}.errors_of(id, true) as errors,
             case when status in ('pending', 'blocked') then ${schema}.waiting_for(id, ${packLimits(types)}::jsonb) end as waiting_for,
             ${schema}.step_list(id) as steps
      from ${schema}.find_job(${id}::uuid)`,
    decode: optional((row) => ({
      ...decodeJob(row),
      waitingFor: decodeReason(row.waiting_for),
      steps: toJobSteps(row.steps as unknown as StepRow[]),
    })),
  };
}

/** Those that are still there, in the order of the ids. */
export function findJobs(ids: readonly string[]): Statement<Job[]> {
  return {
    name: "find jobs",
    isRepeatable: true,
    build: (schema) => sql`
      select ${columns}
      from unnest(${ids}::uuid[]) with ordinality as requested(job_id, number)
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
    build: (schema) => sql`select searched_to, ${columns} from ${searchOf(schema, filter)}`,
    decode: toPage(decodeJob),
  };
}

/** The status of a job, and the errors of its attempts. */
export type JobState = Pick<RowOf<typeof jobs>, "id" | "status" | "attempts" | "errors">;

export function findStates(ids: readonly string[]): Statement<JobState[]> {
  const { id, status, attempts, errors } = jobColumns;
  const stateColumns = { id, status, attempts, errors };
  return {
    name: "find states",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(stateColumns)}
      from unnest(${ids}::uuid[]) as requested_id
      cross join lateral ${schema}.find_job(requested_id)`,
    decode: many(decodeColumns(stateColumns)),
  };
}
