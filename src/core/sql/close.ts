// cancel, replay, discard: what people do to single jobs. See migrations/functions/close.sql.
import { sql } from "drizzle-orm";
import type { Payload } from "../job.ts";
import { many, one, type Statement } from "./statement.ts";

/** False: the job is not pending. */
export function cancel(id: string): Statement<boolean> {
  return {
    name: "cancel",
    isRepeatable: false, // the second answer would be that it is no longer pending
    build: (schema) => sql`select ${schema}.cancel(${id}::uuid) as cancelled`,
    decode: one((row) => row.cancelled as boolean),
  };
}

/** The ids that were dead and are pending again. */
export function replay(ids: readonly string[], payload: Payload | null = null): Statement<string[]> {
  return {
    name: "replay",
    isRepeatable: false,
    build: (schema) => sql`
      select id
      from ${schema}.replay(
        ${sql.param(ids)}::uuid[],
        ${payload === null ? null : JSON.stringify(payload)}::jsonb
      ) as id`,
    decode: many((row) => row.id as string),
  };
}

/** The ids that were dead and are discarded now. */
export function discard(ids: readonly string[]): Statement<string[]> {
  return {
    name: "discard",
    isRepeatable: false,
    build: (schema) => sql`select id from ${schema}.discard(${sql.param(ids)}::uuid[]) as id`,
    decode: many((row) => row.id as string),
  };
}
