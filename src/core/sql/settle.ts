// settle: a whole batch of mixed outcomes in one statement, each fenced by its generation.
// A settlement whose lease was lost matches no row; the answer lists the ones that applied.
import { sql } from "drizzle-orm";
import type { JobStatus, Settlement } from "../job.ts";
import type { Statement } from "./statement.ts";

/** An error's message is kept with the job; this bounds what one attempt can add. */
export const maxErrorLength = 4000;

export interface Settled {
  id: string;
  status: JobStatus;
}

export function settle(settlements: readonly Settlement[]): Statement<Settled> {
  const rows = settlements.map(({ job, outcome }) => ({
    id: job.id,
    generation: job.leaseGeneration,
    kind: outcome.kind,
    output: outcome.kind === "complete" ? outcome.output : null,
    message: "message" in outcome ? outcome.message.slice(0, maxErrorLength) : null,
    reason: outcome.kind === "bury" ? outcome.reason : null,
    delay: "retryInSeconds" in outcome ? outcome.retryInSeconds : 0,
  }));
  return {
    name: "settle",
    isRepeatable: true, // the first run ended the leases, so a second one matches nothing
    build: (schema) => sql`
      with outcome as materialized (
        select o.*, o.kind = 'bury' or (o.kind = 'retry' and job.attempts >= job.max_attempts) as dies
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
          as o(id uuid, generation bigint, kind text, output jsonb, message text, reason text, delay float8)
        join ${schema}.job on job.id = o.id
      )
      update ${schema}.job
      set status = case when kind = 'complete' then 'completed' when dies then 'dead' else 'pending' end,
          completed_at = case when kind = 'complete' then now() end,
          output = case when kind = 'complete' then nullif(outcome.output, 'null') end,
          dead_reason = case when dies then coalesce(reason, 'exhausted') end,
          attempts = job.attempts - case when kind in ('snooze', 'release') then 1 else 0 end,
          scheduled_at = case when kind in ('retry', 'snooze')
                           then now() + make_interval(secs => delay) else job.scheduled_at end,
          errors = case when message is null then job.errors
                     else job.errors || jsonb_build_object('attempt', job.attempts, 'at', now(), 'message', message)
                   end,
          lease_expires_at = null
      from outcome
      where job.id = outcome.id
        and job.status = 'processing'
        and job.lease_generation = outcome.generation
      returning job.id, job.status`,
    decode: (row) => ({ id: row.id as string, status: row.status as JobStatus }),
  };
}
