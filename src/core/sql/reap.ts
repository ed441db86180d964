// reap: jobs whose lease ran out go back to pending, or are dead once their attempts are used up.
// A drain that died with its invocation never settles; this is what brings its jobs back.
import { sql } from "drizzle-orm";
import type { JobStatus } from "../job.ts";
import type { Statement } from "./statement.ts";

export interface ReapedJob {
  id: string;
  status: JobStatus;
}

export function reapLeases({ limit }: { limit: number }): Statement<ReapedJob> {
  return {
    name: "reap leases",
    isRepeatable: true,
    build: (schema) => sql`
      with ran_out as materialized (
        select id
        from ${schema}.job
        where status = 'processing'
          and lease_expires_at < now()
        order by lease_expires_at
        limit ${limit}::int
        for update skip locked -- a settle that holds the row is just in time
      )
      update ${schema}.job
      set status = case when attempts >= max_attempts then 'dead' else 'pending' end,
          dead_reason = case when attempts >= max_attempts then 'abandoned' end,
          scheduled_at = now() + make_interval(secs => least(30 * 2 ^ (attempts - 1), 3600) + random() * 15),
          errors = errors || jsonb_build_object('attempt', attempts, 'at', now(), 'message', 'the lease ran out'),
          lease_expires_at = null
      where id = any(array(select id from ran_out))
      returning id, status`,
    decode: (row) => ({ id: row.id as string, status: row.status as JobStatus }),
  };
}
