-- suspend: a job gives its lease back and waits for a signal or for the end of jobs, with a time-out. The attempt does not count.
-- A job of an ordered key keeps its turn. If a job waits for a signal and for jobs, all of them must come.

-- The blockers that a suspend names: the signal, and the chains of the jobs.
create or replace function blockers_of_suspend(p_more jsonb) returns uuid[]
language plpgsql as $$
begin
  return array(
    select signal_id(p_more -> 'signal' ->> 'name', p_more -> 'signal' ->> 'key')
    where jsonb_typeof(p_more -> 'signal') = 'object'
    union
    select coalesce((select chain from job where job.id = waited.id::uuid), waited.id::uuid)
    from jsonb_array_elements_text(case when jsonb_typeof(p_more -> 'jobs') = 'array' then p_more -> 'jobs' else '[]' end)
      as waited(id));
end $$;

-- Blocks the jobs that fail_jobs leaves to it. Signals and jobs may have come already: the resolver judges them after the commit.
create or replace function add_waits(p_moves job_move[]) returns void
language plpgsql as $$
declare
  v_ids      uuid[];
  v_events   end_event[];
  v_earliest timestamptz;
begin
  with line as materialized (
    select queue, ends_lane_of(queue) as ends_lane
    from (select distinct queue from unnest(p_moves) where outcome = 'suspend' and seq is null) as name
  ),
  suspended as materialized (
    select nextval('wait_number') as wait, move.*, line.ends_lane, blockers_of_suspend(more) as blockers,
           case when seconds > 0 then clock_timestamp() + make_interval(secs => seconds) end as until
    from unnest(p_moves) as move join line using (queue)
    where outcome = 'suspend' and seq is null
  ),
  stored as (
    insert into blocked (wait, id, lane, attempt, abandonments, key, place, togo, until, signal_name, signal_key)
    select wait, id, lane, attempt, abandonments, key, place, cardinality(blockers), until, more -> 'signal' ->> 'name',
           more -> 'signal' ->> 'key'
    from suspended
  ),
  edges as (
    insert into edge (blocker, wait, lane, dies)
    select blocker, wait, ends_lane, false from suspended cross join lateral unnest(blockers) as blocker
  ),
  timed as (
    insert into scheduled (run_at, id, lane, key, place) -- becomes an event when it is due
    select until, new_id(), ends_lane, wait, 0 from suspended where until is not null
    returning run_at
  )
  select array_agg(id), array_agg(row(ends_lane, wait, -1, null)::end_event), (select min(run_at) from timed)
  into v_ids, v_events, v_earliest from suspended;
  perform keep_reachable(v_earliest);
  perform append_ends(v_events);
  perform note_moves(v_ids, 'processing', 'blocked');
end $$;
