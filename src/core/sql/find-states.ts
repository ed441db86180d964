// find states: how several jobs stand, with what their failed attempts left. See migrations/functions/jobs.sql.
import { sql } from "drizzle-orm";
import type { JobError, JobStatus } from "../job.ts";
import { many, type Statement } from "./statement.ts";

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
