// extend: moves the deadline of claimed jobs' leases. See migrations/functions/extend.sql.
import type { LeaseRef } from "../job.ts";
import { type ChangedJob, decodeChangedJob } from "../job-row.ts";
import { sql } from "./sql.ts";
import { many, one, type Statement, time, timeOf } from "./statement.ts";

export interface Extended {
  id: string;
  leaseExpiresAt: Date;
  /** Somebody asked to cancel the job. */
  cancelRequested: boolean;
}

/** Answers with the jobs whose lease was not lost. */
export function extend(jobs: readonly LeaseRef[], { seconds }: { seconds: number }): Statement<Extended[]> {
  return {
    name: "extend",
    isRepeatable: true,
    build: (schema) => sql`
      select id, ${time("lease_expires_at")}, cancel_requested
      from ${schema}.extend(
        ${jobs.map((job) => job.id)}::uuid[],
        ${jobs.map((job) => job.leaseKey)}::uuid[],
        ${seconds}::float8
      )`,
    decode: many((row) => ({
      id: String(row.id),
      leaseExpiresAt: timeOf(row.lease_expires_at),
      cancelRequested: row.cancel_requested === true,
    })),
  };
}

export function extendOne(
  { id, leaseKey }: LeaseRef,
  { seconds }: { seconds: number },
): Statement<ChangedJob | null> {
  return {
    name: "extend one",
    isRepeatable: true,
    build: (schema) => sql`
      select ${schema}.extend_one(${id}::uuid, ${leaseKey}::uuid, ${seconds}::float8) as changed`,
    decode: one((row) => decodeChangedJob(row.changed)),
  };
}
