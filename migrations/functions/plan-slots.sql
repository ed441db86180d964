-- plan_slots: keeps the next slots of each schedule in `scheduled`. Their times are computed outside, because Postgres knows no cron
-- expressions. Whoever plans shows up to where slots were planned when it began (a compare-and-set), so of two planners one writes.

-- The id of a slot that waits. It says which slot of which schedule it is, so the index of ids keeps each from being there twice, and
-- finds all slots of a schedule in order. It is higher than the id of any job.
create or replace function slot_id(number bigint, slot timestamptz) returns uuid
language sql immutable
return ('ffff' || lpad(to_hex(number), 14, '0') || lpad(to_hex(floor(extract(epoch from slot) * 1000)::bigint), 14, '0'))::uuid;

create or replace function schedule_of_slot(id uuid) returns bigint
language sql immutable
return ('x' || substr(replace(id::text, '-', ''), 5, 14))::bit(56)::bigint;

create or replace function time_of_slot(id uuid) returns timestamptz
language sql immutable
return to_timestamp(('x' || right(replace(id::text, '-', ''), 14))::bit(56)::bigint / 1000.0);

-- The schedules that need more slots, and whether the schedules in the caller's code have to be applied first (code-schedules.sql):
-- { apply, schedules: [{ number, cron, time_zone, missed, from, from_ms, now_ms }] }.
create or replace function schedules_to_plan(p_limit int, p_checksum text default null) returns json
language sql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select json_build_object(
    'apply', p_checksum is not null and meet_code_schedules(p_checksum),
    'schedules', coalesce(json_agg(json_build_object(
      'number', number, 'cron', cron, 'time_zone', time_zone, 'missed', missed, 'from', planned_until::text,
      'from_ms', floor(extract(epoch from planned_until) * 1000),
      'now_ms', floor(extract(epoch from clock_timestamp()) * 1000))), '[]'))
  from (select * from schedule where refill_at <= clock_timestamp() order by refill_at limit p_limit) as low
$$;

-- [{ number, from, slots_ms, refill_ms }] → how many of these schedules were planned. The others have changed meanwhile.
create or replace function plan_slots(p_plans jsonb) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_planned  int;
  v_earliest timestamptz;
begin
  lock table scheduled in row exclusive mode; -- before the clock: see insert_jobs
  with plan as materialized (
    select * from jsonb_to_recordset(p_plans) as plan(number bigint, "from" timestamptz, slots_ms bigint[], refill_ms bigint)
  ),
  changing as materialized (
    select schedule.number, lane, slots_ms, refill_ms
    from schedule join plan using (number)
    where planned_until = plan."from" and paused_since is null
    order by number
    for update of schedule
  ),
  slot as materialized (
    select number, lane, to_timestamp(ms / 1000.0) as at from changing cross join lateral unnest(slots_ms) as ms
  ),
  planned as (
    insert into scheduled (run_at, id, lane, place) select at, slot_id(number, at), lane, -1 from slot
    on conflict (id) do nothing
    returning run_at
  ),
  moved as (
    update schedule
    set planned_until = greatest(planned_until, (select to_timestamp(max(ms) / 1000.0) from unnest(slots_ms) as ms)),
        refill_at = to_timestamp(refill_ms / 1000.0)
    from changing where schedule.number = changing.number
    returning schedule.number
  ),
  forgotten as ( -- the newest decides about overlaps; the ten newest are shown
    delete from schedule_run as run using changing
    where run.schedule = changing.number
      and slot < (select slot from schedule_run as newest where newest.schedule = changing.number order by slot desc offset 9 limit 1)
  )
  select (select count(*) from moved), (select min(run_at) from planned) into v_planned, v_earliest;
  perform keep_reachable(v_earliest);
  return v_planned;
end $$;

-- When slots have to be planned again; null: never. A clock that starts rounds reads it. When the next slot is due follows from
-- min(scheduled.run_at), as for delayed jobs.
create or replace function next_plan_at() returns timestamptz
language sql stable
security definer
set search_path from current
as $$
  select refill_at from schedule where refill_at < 'infinity' order by refill_at limit 1
$$;
