// cancel: closes a pending job, so that it never runs. See migrations/functions/cancel.sql.
import { sql } from "drizzle-orm";
import { type ChangedJob, decodeChangedJob } from "../job-row.ts";
import { one, type Statement } from "./statement.ts";

/** Answers null if there is no such job among the types that the caller may use. `types` is null if these are all. */
export function cancel(
  id: string,
  { types = null }: { types?: readonly string[] | null } = {},
): Statement<ChangedJob | null> {
  return {
    name: "cancel",
    isRepeatable: false, // the second answer would be that the job is no longer pending
    build: (schema) => sql`
      select ${schema}.cancel(${id}::uuid, ${types && sql.param(types)}::text[]) as changed`,
    decode: one((row) => decodeChangedJob(row.changed)),
  };
}
