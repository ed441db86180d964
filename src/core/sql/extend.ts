// extend: holds jobs for longer; answers with those that are still held. See migrations/functions/extend.sql.
import { sql } from "drizzle-orm";
import type { Held } from "../job.ts";
import { many, type Statement, time, timeOf } from "./statement.ts";

export interface Extended {
  id: string;
  leaseExpiresAt: Date;
}

export function extend(jobs: readonly Held[], { seconds }: { seconds: number }): Statement<Extended[]> {
  return {
    name: "extend",
    isRepeatable: true,
    build: (schema) => sql`
      select id, ${time("lease_expires_at")}
      from ${schema}.extend(
        ${sql.param(jobs.map((job) => job.id))}::uuid[],
        ${sql.param(jobs.map((job) => job.leaseKey))}::uuid[],
        ${seconds}::float8
      )`,
    decode: many((row) => ({ id: row.id as string, leaseExpiresAt: timeOf(row.lease_expires_at) })),
  };
}
