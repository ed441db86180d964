// signal: what a durable step waits for. See migrations/functions/signal.sql and blockers.sql.
import { sql } from "drizzle-orm";
import type { JobStatus, Json } from "../job.ts";
import { one, type Statement } from "./statement.ts";

/** Null if nobody has sent the signal yet. */
export function findSignal(name: string, key: string): Statement<{ payload: Json } | null> {
  return {
    name: "find signal",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.signal_of(${name}::text, ${key}::text) as signal`,
    decode: one(({ signal }) => (signal ? { payload: (signal as { payload: Json }).payload ?? null } : null)),
  };
}

export interface JobEnd {
  id: string;
  status: JobStatus;
  output: Json;
}

/** In the order of the ids. Of a job that continued, the last of its chain counts. */
export function findOutcomes(ids: readonly string[]): Statement<JobEnd[]> {
  return {
    name: "find outcomes",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.outcomes_of(${sql.param(ids)}::uuid[]) as outcomes`,
    decode: one((row) =>
      (row.outcomes as { job_id: string; status: JobStatus; output: Json }[]).map(
        ({ job_id, status, output }) => ({
          id: job_id,
          status,
          output,
        }),
      ),
    ),
  };
}
