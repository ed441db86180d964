// discard: gives a dead job up. See migrations/functions/discard.sql.
import { type ChangedJob, decodeChangedJob } from "../job-row.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

export function discard(
  actor: string,
  { id, reason = null }: { id: string; reason?: string | null },
): Statement<ChangedJob | null> {
  return {
    name: "discard",
    isRepeatable: false, // the second answer would be that the job is no longer dead
    build: (schema) => sql`select ${schema}.discard(${actor}::text, ${id}::uuid, ${reason}::text) as changed`,
    decode: one((row) => decodeChangedJob(row.changed)),
  };
}
