-- run outcomes: what has become of the jobs that a run has replayed. It looks at the first of them, at most 250: each costs a few
-- look-ups by id, so the answer costs the same however many the run replays. A fix that does not work shows early.

create or replace function run_sample() returns int
language sql immutable
return 250;

-- Called by each step, with the jobs that it has replayed.
create or replace function note_replayed(p_run dead_run, p_ids uuid[]) returns void
language sql as $$
  insert into dead_run_job (run_id, id) select p_run.id, id from unnest(p_ids) as id limit greatest(run_sample() - p_run.done, 0)
$$;

-- { jobs, completed, dead, waiting, processing, other }: how many it has looked at, and how they are now. `other` were cancelled or
-- discarded, or are no longer stored. Null: the run has replayed none.
--
-- A stored job that is nowhere else is completed. `done` itself is not searched: with many batches in a bucket of ids, that would
-- cost each job more.
create or replace function run_outcomes(p_run_id bigint) returns jsonb
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_outcomes jsonb;
begin
  with replayed as materialized (
    select id from dead_run_job where run_id = p_run_id
  ),
  held as materialized (
    select replayed.id from lease cross join unnest(ids) as leased(id) join replayed on replayed.id = leased.id
    where deadline > now() - interval '1 hour'
  ),
  found as (
    select case when closed.status = 'dead' then 'dead'
                when closed.status is not null then 'other'
                when ready.id is not null or scheduled.id is not null or blocked.id is not null then 'waiting'
                when held.id is not null then 'processing'
                when job.id is not null then 'completed'
                else 'other' end as outcome
    from replayed
    left join lateral (select status from closed where closed.id = replayed.id offset 0) as closed on true -- look-ups by id
    left join lateral (select id from ready where ready.id = replayed.id offset 0) as ready on true
    left join lateral (select id from scheduled where scheduled.id = replayed.id offset 0) as scheduled on true
    left join lateral (select id from blocked where blocked.id = replayed.id offset 0) as blocked on true
    left join lateral (select id from job where job.id = replayed.id offset 0) as job on true
    left join held on held.id = replayed.id
  )
  select jsonb_build_object(
           'jobs', count(*), 'completed', count(*) filter (where outcome = 'completed'), 'dead', count(*) filter (where outcome = 'dead'),
           'waiting', count(*) filter (where outcome = 'waiting'), 'processing', count(*) filter (where outcome = 'processing'),
           'other', count(*) filter (where outcome = 'other'))
  into v_outcomes from found having count(*) > 0;
  return v_outcomes;
end $$;

-- The part of prune: runs that have ended so long ago.
create or replace function forget_runs(p_keep interval, p_limit int) returns void
language sql as $$
  with forgotten as (
    delete from dead_run
    where id = any(array(select id from dead_run where ended_at <= now() - p_keep order by id limit p_limit)) returning id
  )
  delete from dead_run_job where run_id in (select id from forgotten)
$$;
