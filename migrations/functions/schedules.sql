-- schedules: put, delete, pause, resume, run now, list. A change locks the schedule's row. It then removes slots, and waits for a
-- claim that fires one of them at this moment; a claim never waits for a schedule's row.

-- A schedule as the API shows it, and in the audit without the last four.
create or replace view schedules as
select schedule.name, schedule.cron, schedule.time_zone, lane.type, schedule.payload, lane.queue, lane.priority, schedule.max_attempts,
       schedule.missed, schedule.overlap, schedule.paused_since is not null as paused, schedule.source,
       array(select run_at from scheduled
             where id >= slot_id(number, now()) and id < slot_id(number + 1, 'epoch')
             order by id limit 5) as next_slots,
       run.slot as last_slot, run.job_id as last_job_id, schedule.number
from schedule
join lane using (lane)
left join lateral (
  select slot, job_id from schedule_run where schedule_run.schedule = number order by slot desc limit 1
) as run on true;

create or replace function schedule_for_audit(p_name text) returns jsonb
language sql stable as $$
  select to_jsonb(schedules) - 'next_slots' - 'last_slot' - 'last_job_id' - 'number' from schedules where name = p_name
$$;

create or replace function find_schedules(p_after text, p_limit int, p_name text default null) returns setof jsonb
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select to_jsonb(schedules) - 'number' from schedules
  where name > coalesce(p_after, '') and (p_name is null or name = p_name)
  order by name limit p_limit
$$;

-- What became of the last jobs of schedules, at most ten of each, oldest first: [{ slot, job_id, status }, …]. The status is null
-- if the job is no longer stored. p_after and p_limit are those of find_schedules. A job's state is the table that it is in, as in
-- the view `jobs`, which is too slow for hundreds of jobs.
create or replace function schedule_outcomes(p_after text, p_limit int) returns table (name text, outcomes jsonb)
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_runs   uuid[];
  v_leased uuid[];
begin
  v_runs := array(
    select run.job_id
    from (
      select number from schedule where schedule.name > coalesce(p_after, '') order by schedule.name limit p_limit
    ) as page
    cross join lateral (
      select job_id from schedule_run where schedule_run.schedule = page.number order by slot desc limit 10
    ) as run);
  v_leased := array(
    select held.id from lease cross join lateral unnest(ids) as held(id)
    where deadline > now() - interval '1 hour' and held.id = any(v_runs));
  return query
    select page.name, coalesce(jsonb_agg(jsonb_build_object('slot', run.slot, 'job_id', run.job_id, 'status', case
             when closed.id is not null then closed.status
             when ready.id is not null or scheduled.id is not null then 'pending'
             when blocked.id is not null then 'blocked'
             when run.job_id = any(v_leased) then 'processing'
             when job.id is not null then 'completed' end) order by run.slot) filter (where run.slot is not null), '[]')
    from (
      select schedule.name, number from schedule
      where schedule.name > coalesce(p_after, '') order by schedule.name limit p_limit
    ) as page
    left join lateral (
      select slot, job_id from schedule_run where schedule_run.schedule = page.number order by slot desc limit 10
    ) as run on true
    left join job on job.id = run.job_id
    left join closed on closed.id = run.job_id
    left join ready on ready.id = run.job_id
    left join scheduled on scheduled.id = run.job_id
    left join blocked on blocked.id = run.job_id
    group by page.name
    order by page.name;
end $$;

-- Makes or changes a schedule: `created`, `changed`, or `in_code` if the API may not change it. p_fields are the columns; `paused`
-- may be null: as it was.
create or replace function put_schedule(p_actor text, p_name text, p_fields jsonb, p_source text default 'api') returns text
language plpgsql
security definer
set search_path from current
as $$
declare
  c_defaults constant jsonb := '{"time_zone": "UTC", "queue": "default", "priority": 5, "payload": {}, "max_attempts": 5,
                                 "missed": "last", "overlap": "allow"}';
  v_new    schedule;
  v_job    new_job := jsonb_populate_record(null::new_job, c_defaults || jsonb_strip_nulls(p_fields));
  v_fault  text := coalesce(payload_fault_of(v_job.payload), fault_of(v_job), outside_fault_of(v_job));
  v_paused timestamptz := case when (p_fields ->> 'paused')::boolean then now() end;
  v_lane   int;
  v_before jsonb;
  v_old    schedule;
begin
  perform refuse(v_fault) where v_fault is not null;
  v_new := jsonb_populate_record(null::schedule, c_defaults || jsonb_strip_nulls(p_fields)); -- its domains say less about a fault
  v_lane := lane_of(v_job.queue, v_job.type, v_job.priority);
  insert into schedule (name, source, cron, time_zone, lane, payload, max_attempts, missed, overlap, paused_since, planned_until, refill_at)
  values (p_name, p_source, v_new.cron, v_new.time_zone, v_lane, v_new.payload, v_new.max_attempts, v_new.missed, v_new.overlap,
          v_paused, clock_timestamp(), case when v_paused is null then '-infinity' else 'infinity' end::timestamptz)
  on conflict (name) do nothing;
  if found then
    perform write_audit(p_actor, 'put', 'schedule ' || p_name, null, schedule_for_audit(p_name));
    return 'created';
  end if;

  select * into v_old from schedule where name = p_name for update;
  if not found then -- deleted at this moment
    return put_schedule(p_actor, p_name, p_fields, p_source);
  elsif v_old.source = 'code' and p_source = 'api' then
    return 'in_code';
  end if;
  v_before := schedule_for_audit(p_name);
  if p_fields ->> 'paused' is null or v_paused is not null then
    v_paused := coalesce(v_old.paused_since, v_paused);
  end if;
  update schedule
  set source = p_source, cron = v_new.cron, time_zone = v_new.time_zone, lane = v_lane, payload = v_new.payload,
      max_attempts = v_new.max_attempts, missed = v_new.missed, overlap = v_new.overlap
  where name = p_name;
  if (v_old.cron, v_old.time_zone, v_old.paused_since is null) is distinct from (v_new.cron, v_new.time_zone, v_paused is null) then
    perform plan_anew(v_old.number, v_paused);
  elsif v_old.lane <> v_lane then
    perform move_slots(v_old.number, v_lane);
  end if;
  perform write_audit(p_actor, 'put', 'schedule ' || p_name, v_before, schedule_for_audit(p_name));
  return 'changed';
end $$;

-- All slots that were not fired are gone. If the schedule is not paused, the next ones are planned from now on.
create or replace function plan_anew(p_number bigint, p_paused_since timestamptz) returns void
language plpgsql as $$
begin
  perform remove_slots(p_number);
  update schedule
  set paused_since = p_paused_since,
      refill_at = case when p_paused_since is null then '-infinity' else 'infinity' end::timestamptz,
      planned_until = greatest(clock_timestamp(), (select max(slot) from schedule_run where schedule_run.schedule = p_number))
  where number = p_number;
end $$;

create or replace function remove_slots(p_number bigint) returns void
language plpgsql as $$
begin
  delete from scheduled where id >= slot_id(p_number, 'epoch') and id < slot_id(p_number + 1, 'epoch');
end $$;

create or replace function move_slots(p_number bigint, p_lane int) returns void
language plpgsql as $$
declare
  v_earliest timestamptz;
begin
  with moved as (
    update scheduled set lane = p_lane where id >= slot_id(p_number, 'epoch') and id < slot_id(p_number + 1, 'epoch') returning run_at
  )
  select min(run_at) into v_earliest from moved;
  perform keep_reachable(v_earliest);
end $$;

-- These three are false if there is no such schedule.

create or replace function delete_schedule(p_actor text, p_name text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
declare
  v_number bigint := (select number from schedule where name = p_name for update);
begin
  if v_number is null then
    return false;
  end if;
  perform write_audit(p_actor, 'delete', 'schedule ' || p_name, schedule_for_audit(p_name), null);
  perform remove_slots(v_number);
  delete from schedule_run where schedule = v_number;
  delete from schedule where number = v_number;
  return true;
end $$;

create or replace function pause_schedule(p_actor text, p_name text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
begin
  return set_schedule_paused(p_actor, p_name, true);
end $$;

create or replace function resume_schedule(p_actor text, p_name text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
begin
  return set_schedule_paused(p_actor, p_name, false);
end $$;

create or replace function set_schedule_paused(p_actor text, p_name text, p_is_paused boolean) returns boolean
language plpgsql as $$
declare
  v_old        schedule;
  v_was_paused boolean;
begin
  select * into v_old from schedule where name = p_name for update;
  if not found then
    return false;
  end if;
  v_was_paused := v_old.paused_since is not null;
  if v_was_paused <> p_is_paused then
    perform plan_anew(v_old.number, case when p_is_paused then now() end);
  end if;
  perform write_audit(p_actor, case when p_is_paused then 'pause' else 'resume' end, 'schedule ' || p_name,
                      jsonb_build_object('paused', v_was_paused), jsonb_build_object('paused', p_is_paused));
  return true;
end $$;

-- Makes a job now, whether or not the schedule is paused or its last job runs. Its slot is this moment, and never a whole second, as
-- the slots of an expression are. Null: there is no such schedule.
create or replace function run_schedule(p_actor text, p_name text) returns uuid
language plpgsql
security definer
set search_path from current
as $$
declare
  v_number bigint := (select number from schedule where name = p_name);
  v_slot   timestamptz := clock_timestamp();
  v_id     uuid;
begin
  if v_number is null then
    return null;
  elsif date_trunc('second', v_slot) = v_slot then
    v_slot := v_slot + interval '1 microsecond';
  end if;
  v_id := (make_slot_jobs(array[v_number], array[v_slot], array[false]))[1];
  perform write_audit(p_actor, 'run', 'schedule ' || p_name, null, jsonb_build_object('job_id', v_id));
  return v_id;
end $$;
