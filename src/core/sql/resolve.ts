// resolve: completes a pending or blocked job from outside. See migrations/functions/resolve.sql.
import type { Json } from "../job.ts";
import { type ChangedJob, decodeChangedJob } from "../job-row.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

/** `types`: a job of another type counts as not found. Null if all may be resolved. */
export function resolve(
  id: string,
  { output, types = null }: { output: Json; types?: readonly string[] | null },
): Statement<ChangedJob | null> {
  return {
    name: "resolve",
    isRepeatable: false, // the second answer would be that the job has completed
    build: (schema) => sql`
      select ${schema}.resolve(
        ${id}::uuid,
        ${JSON.stringify(output)}::text::jsonb,
        ${types ? types : null}::text[]
      ) as changed`,
    decode: one((row) => decodeChangedJob(row.changed)),
  };
}
