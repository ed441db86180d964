-- stop ahead: takes back what a run has planned. With a rate, a step makes jobs pending for a time to come, because nobody may come
-- before: for a second with the clock, for a minute without. Each step notes them, as they were, and a stop makes those dead
-- again that are not due yet. They are then as if the run had not come to them.

-- The jobs of p_ids that are dead, as they are. Called while the run is locked, before the jobs are changed.
create or replace function rows_of_dead(p_run dead_run, p_ids uuid[], out dead jsonb, out payloads jsonb)
language sql as $$
  select jsonb_object_agg(closed.id, to_jsonb(closed)),
         case when p_run.patch is not null then (
           select jsonb_object_agg(job.id, job.payload) from job
           where job.id = any(p_ids) and job.id >= p_ids[1] and job.id <= p_ids[cardinality(p_ids)]) end
  from (select * from closed where id = any(p_ids) and status = 'dead' order by id for update) as closed
$$;

-- Notes those of them that are due later. What is due by now is forgotten.
create or replace function note_ahead(p_run dead_run, p_ids uuid[], p_dead jsonb, p_payloads jsonb) returns void
language sql
set enable_seqscan = off
set jit = off
as $$
  delete from dead_run_ahead where run_id = p_run.id and until <= now();
  insert into dead_run_ahead (run_id, until, ids, run_ats, dead, payloads)
  select p_run.id, max(run_at), array_agg(id), array_agg(run_at), jsonb_agg(p_dead -> id::text),
         case when p_run.patch is not null then jsonb_agg(p_payloads -> id::text) end
  from scheduled where id = any(p_ids) and run_at > now()
  having count(*) > 0
$$;

-- How many jobs of a run are planned and not due yet.
create or replace function count_ahead(p_run_id bigint) returns bigint
language sql stable
return (select count(*) from dead_run_ahead cross join unnest(run_ats) as run_at
        where run_id = p_run_id and until > now() and run_at > now());

-- Answers how many it has taken back: they are dead of the same reason, since the same time, and with the payload from before. A
-- job counts only as long as it waits for the time that the run gave it: one that was cancelled, or that has run and waits for a
-- retry, is no longer the run's. A claim may hold one that has just become due: it is left to the claim.
create or replace function stop_ahead(p_run_id bigint) returns int
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
  v_ids   uuid[];
  v_turns held_turn[];
begin
  with noted as materialized (
    select entry.* from dead_run_ahead as step
    cross join lateral unnest(step.ids, step.run_ats, array(select jsonb_array_elements(step.dead))) as entry(id, run_at, dead)
    where run_id = p_run_id and entry.run_at > now()
  ),
  waiting as materialized (
    select scheduled.ctid as tid, scheduled.id, abs(scheduled.lane) as lane, scheduled.key, scheduled.place, noted.dead
    from noted join scheduled using (id, run_at) order by scheduled.id for update of scheduled skip locked
  ),
  removed as (
    delete from scheduled where ctid = any(array(select tid from waiting))
  ),
  buried as (
    insert into closed -- in the ordinary lane, where the run has put an isolated job
    select (jsonb_populate_record(null::closed, dead || jsonb_build_object('lane', lane))).* from waiting
  ),
  undone as ( -- the trigger of `closed` counts deaths, and these are none
    insert into death (lane, reason, fingerprint, hour, dead, died)
    select lane, dead ->> 'reason', (dead ->> 'fingerprint')::bigint,
           date_bin('1 hour', (dead ->> 'closed_at')::timestamptz, '2000-01-01 00:00+00'), 0, -count(*)
    from waiting where dead ->> 'fingerprint' is not null group by 1, 2, 3, 4
  ),
  booked as (
    insert into ledger (lane, pending, scheduled, dead)
    select lane, -count(*), -count(*), count(*) from waiting group by lane
  )
  select coalesce(array_agg(id order by id), '{}'),
         -- One that had blocked its key keeps the turn. A turn that it has got since then goes back.
         array_agg(row(lane, key, place)::held_turn) filter (where place is not null and dead ->> 'place' is null)
  into v_ids, v_turns
  from waiting;

  update job set payload = noted.payload
  from dead_run_ahead as step
  cross join lateral unnest(step.ids, array(select jsonb_array_elements(step.payloads))) as noted(id, payload)
  where step.run_id = p_run_id and step.payloads is not null
    and job.id = noted.id and job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)];
  delete from dead_run_ahead where run_id = p_run_id;
  delete from dead_run_job where run_id = p_run_id and id = any(v_ids);
  perform return_held_turns(v_turns);
  perform note_moves(v_ids, 'pending', 'dead');
  return cardinality(v_ids);
end $$;
