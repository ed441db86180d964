// cancel: closes a pending job, so that it never runs, or asks a running one to stop. See migrations/functions/cancel.sql.
import { type ChangedJob, decodeChangedJob } from "../job-row.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

/**
 * Answers null if there is no such job among the types that the caller may use. `types` is null if these are all. With
 * `running`, a job that is being processed is asked to stop.
 */
export function cancel(
  id: string,
  { types = null, running = false }: { types?: readonly string[] | null; running?: boolean } = {},
): Statement<ChangedJob | null> {
  return {
    name: "cancel",
    isRepeatable: false, // the second answer would be that the job is no longer pending
    build: (schema) => sql`
      select ${schema}.cancel(${id}::uuid, ${types && types}::text[], ${running}::boolean) as changed`,
    decode: one((row) => decodeChangedJob(row.changed)),
  };
}

/** Which of these running jobs were asked to stop. */
export function findCancelRequests(ids: readonly string[]): Statement<string[]> {
  return {
    name: "find cancel requests",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.cancel_requested(${ids}::uuid[]) as ids`,
    decode: one((row) => row.ids as string[]),
  };
}
