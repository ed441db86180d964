// claim: a batch of due jobs under one lease each. Row locks that are skipped keep two drains apart; the
// generation that each claim raises keeps an old holder from settling what a new one works on.
import { sql } from "drizzle-orm";
import type { ClaimedJob, Payload } from "../job.ts";
import type { Statement } from "./statement.ts";

export interface Claim {
  queue: string;
  types: readonly string[];
  limit: number;
  leaseSeconds: number;
}

export function claim({ queue, types, limit, leaseSeconds }: Claim): Statement<ClaimedJob> {
  return {
    name: "claim",
    // Run again after a lost answer it claims other jobs; the first ones come back when their lease runs out.
    isRepeatable: false,
    build: (schema) => sql`
      with due as materialized ( -- materialized: the planner must not run a locking limit twice
        select id
        from ${schema}.job
        where status = 'pending'
          and queue = ${queue}::text
          and type = any(${sql.param(types)}::text[])
          and scheduled_at <= now()
          and expires_at > now()
        order by priority desc, scheduled_at, id
        limit ${limit}::int
        for update skip locked
      )
      update ${schema}.job
      set status = 'processing',
          attempts = attempts + 1,
          started_at = now(),
          lease_generation = lease_generation + 1,
          lease_expires_at = now() + make_interval(secs => ${leaseSeconds}::float8)
      where id = any(array(select id from due))
      returning id, type, payload, attempts, max_attempts, lease_generation`,
    decode: (row) => ({
      id: row.id as string,
      type: row.type as string,
      payload: row.payload as Payload,
      attempt: Number(row.attempts),
      maxAttempts: Number(row.max_attempts),
      leaseGeneration: String(row.lease_generation),
    }),
  };
}
