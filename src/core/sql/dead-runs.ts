// start, list, find and stop a run over dead letters. See migrations/functions/dead-runs.sql.
import type { DeadRun, NewDeadRun, RunAction, RunOutcomes, RunState } from "../dead-letters.ts";
import type { DeadReason, Payload } from "../job.ts";
import { sql } from "./sql.ts";
import { many, one, type Statement } from "./statement.ts";

interface RunRow {
  id: number;
  action: RunAction;
  type: string | null;
  reason: DeadReason | null;
  fingerprint: string | null;
  queue: string | null;
  until: string;
  max_jobs: number | null;
  per_minute: number | null;
  patch: Payload | null;
  note: string | null;
  actor: string;
  state: RunState;
  matched: number;
  done: number;
  skipped: number;
  skips: { job_id: string; reason: string }[];
  remaining: number;
  started_at: string;
  ended_at: string | null;
  outcomes?: RunOutcomes | null;
}

function decodeRun(row: RunRow): DeadRun {
  const { id, until, max_jobs, per_minute, skips, started_at, ended_at, ...rest } = row;
  return {
    ...rest,
    id: String(id),
    until: new Date(until),
    maxJobs: max_jobs,
    perMinute: per_minute,
    skips: skips.map(({ job_id, reason }) => ({ jobId: job_id, reason })),
    startedAt: new Date(started_at),
    endedAt: ended_at === null ? null : new Date(ended_at),
  };
}

/** Its first step comes later: see `advanceDeadRuns`. */
export function startDeadRun(actor: string, run: NewDeadRun): Statement<DeadRun> {
  return {
    name: "start dead run",
    isRepeatable: false, // a second one would go over the same jobs
    build: (schema) => sql`
      select ${schema}.start_dead_run(
        ${actor}::text,
        ${run.action}::text,
        ${run.type ?? null}::text,
        ${run.reason ?? null}::text,
        ('x' || ${run.fingerprint ?? null}::text)::bit(64)::bigint,
        ${run.queue ?? null}::text,
        ${run.until?.toISOString() ?? null}::timestamptz,
        ${run.maxJobs ?? null}::bigint,
        ${run.perMinute ?? null}::int,
        ${run.patch === undefined ? null : JSON.stringify(run.patch)}::jsonb,
        ${run.note ?? null}::text
      ) as run`,
    decode: one((row) => decodeRun(row.run as RunRow)),
  };
}

/** With what has become of its jobs. See migrations/functions/run-outcomes.sql. */
export function findDeadRun(id: string): Statement<DeadRun | null> {
  return {
    name: "find dead run",
    isRepeatable: true,
    build: (schema) => sql`
      select ${schema}.shown_run(${id}::bigint)
             || jsonb_build_object('outcomes', ${schema}.run_outcomes(${id}::bigint)) as run`,
    decode: one((row) => (row.run === null ? null : decodeRun(row.run as RunRow))),
  };
}

/** Newest first. The newest `outcomes` of those that run come with what has become of their jobs, which costs a few ms each. */
export function listDeadRuns({
  before,
  limit,
  outcomes = 0,
}: {
  before?: string | undefined;
  limit: number;
  outcomes?: number;
}): Statement<DeadRun[]> {
  return {
    name: "list dead runs",
    isRepeatable: true,
    build: (schema) => sql`
      select run || case when run ->> 'state' = 'running' and place <= ${outcomes}::int
                         then jsonb_build_object('outcomes', ${schema}.run_outcomes((run ->> 'id')::bigint))
                         else '{}' end as run
      from (
        select run, number, count(*) filter (where run ->> 'state' = 'running') over (order by number) as place
        from ${schema}.list_dead_runs(${before ?? null}::bigint, ${limit}::int) with ordinality as listed(run, number)
      ) as page
      order by number`,
    decode: many((row) => decodeRun(row.run as RunRow)),
  };
}

/** Null if there is no such run. `applied` is false if it had ended. */
export function stopDeadRun(actor: string, id: string): Statement<{ applied: boolean; run: DeadRun } | null> {
  return {
    name: "stop dead run",
    isRepeatable: false, // the second answer would be that it had ended
    build: (schema) => sql`select ${schema}.stop_dead_run(${actor}::text, ${id}::bigint) as stopped`,
    decode: one((row) => {
      const stopped = row.stopped as { applied: boolean; run: RunRow } | null;
      return stopped && { applied: stopped.applied, run: decodeRun(stopped.run) };
    }),
  };
}
