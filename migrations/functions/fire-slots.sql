-- fire_slots: makes the jobs of slots that have become due. A claim calls it with the slots that it has removed from `scheduled`,
-- so the job and the end of the slot are one transaction, and nobody else has the slot. A slot that nobody fired within 90 seconds
-- is late; its schedule's `missed` says what happens then.
--
-- It reads schedules and locks none that a change of the schedule may hold: whoever changes a schedule waits for slots.

-- Whether a claim may take a slot. Two claims with slots of one schedule that skips overlaps: the second must see the job of the
-- first, and does not wait for it. It leaves its slot where it is, and the next claim has it. Until then backlog() counts the slot.
create or replace function may_fire(p_slot uuid) returns boolean
language plpgsql as $$
declare
  v_number bigint := (select number from schedule where number = schedule_of_slot(p_slot) and overlap = 'skip');
begin
  return v_number is null
    or pg_try_advisory_xact_lock(hashtextextended(format('sluice.schedule.%s.%s', current_schema(), v_number), 0));
end $$;

create or replace function is_late(slot timestamptz, at timestamptz) returns boolean
language sql stable
return slot < at - interval '90 seconds';

create or replace function fire_slots(p_ids uuid[], p_now timestamptz) returns void
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_numbers bigint[] := array(select schedule_of_slot(id) from unnest(p_ids) as id order by id);
  v_slots   timestamptz[] := array(select time_of_slot(id) from unnest(p_ids) as id order by id);
  v_due     due_slot[];
begin
  v_due := array(
    select row(number, slot, is_late(slot, p_now))::due_slot
    from unnest(v_numbers, v_slots) as due(number, slot) join schedule using (number)
    where paused_since is null
      and not exists (select from schedule_run as run where run.schedule = number and run.slot = due.slot)
      and not (is_late(slot, p_now)
               and (missed = 'skip' or missed = 'last' and has_later_late(number, slot, v_numbers, v_slots, p_now)))
    order by slot, number);
  v_due := without_unplanned(v_due);
  perform make_slot_jobs(
    array_agg(number order by slot, number), array_agg(slot order by slot, number), array_agg(late order by slot, number))
  from (
    select due.*, overlap, row_number() over (partition by due.number order by slot) as place
    from unnest(v_due) as due join schedule using (number)
  ) as fired
  where overlap = 'allow' or place = 1 and last_job_has_ended(number)
  having count(*) > 0;
end $$;

-- For `last`: a later slot is late too. It is in this call, it waits, or it has made its job.
create or replace function has_later_late(
  p_number bigint, p_slot timestamptz, p_numbers bigint[], p_slots timestamptz[], p_now timestamptz
) returns boolean
language plpgsql stable as $$
begin
  return exists (
      select from unnest(p_numbers, p_slots) as due(number, slot)
      where number = p_number and slot > p_slot and is_late(slot, p_now))
    or exists (
      select from scheduled
      where id > slot_id(p_number, p_slot) and id < slot_id(p_number, p_now - interval '90 seconds'))
    or exists (select from schedule_run where schedule = p_number and slot > p_slot);
end $$;

-- For `last`: if a late slot is the last one that was planned, later ones may be late too, and nobody has computed them. Then it
-- counts as not planned, and the next plan has the latest of them. If another transaction has locked the schedule, the slot is
-- fired: a run too many is better than one too few.
create or replace function without_unplanned(p_due due_slot[]) returns due_slot[]
language plpgsql as $$
declare
  v_unplanned bigint[];
begin
  if true = any(array(select late from unnest(p_due))) then
    with last as materialized (
      select number, due.slot from unnest(p_due) as due join schedule using (number)
      where due.late and schedule.missed = 'last' and planned_until = due.slot
      for update of schedule skip locked
    ),
    unplanned as (
      update schedule set planned_until = last.slot - interval '1 microsecond', refill_at = '-infinity'
      from last where schedule.number = last.number
      returning schedule.number
    )
    select array_agg(number) into v_unplanned from unplanned;
    p_due := array(select due from unnest(p_due) as due where not (late and number = any(coalesce(v_unplanned, '{}'))));
  end if;
  return p_due;
end $$;

create or replace function last_job_has_ended(p_number bigint) returns boolean
language plpgsql stable as $$
declare
  v_id uuid := (select job_id from schedule_run where schedule = p_number order by slot desc limit 1);
begin
  return v_id is null
    or exists (select from closed where id = v_id)
    or exists (select from done where hi_id >= v_id and hi_id <= end_of_bucket(v_id) and lo_id <= v_id and v_id = any(ids))
    or not exists (select from job where id = v_id);
end $$;

-- One job for each slot, due at once. Returns their ids in the order of the slots.
create or replace function make_slot_jobs(p_numbers bigint[], p_slots timestamptz[], p_missed boolean[]) returns uuid[]
language plpgsql as $$
declare
  v_stem text := id_stem(cardinality(p_slots));
  v_ids  uuid[];
begin
  with new as materialized (
    select numbered_id(v_stem, due.place) as id, lane, max_attempts, payload, schedule.number, due.slot,
           jsonb_build_object('name', name, 'slot', to_char(due.slot at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                              'missed', due.missed) as schedule
    from unnest(p_numbers, p_slots, p_missed) with ordinality as due(number, slot, missed, place) join schedule using (number)
  ),
  written as (
    insert into job (id, lane, max_attempts, payload, schedule)
    select id, lane, max_attempts, payload, schedule from new
  ),
  readied as (
    insert into ready (seq, id, lane) select nextval('ready_seq'), id, lane from (select * from new order by id) as in_order
  ),
  booked as (
    insert into ledger (lane, enqueued, pending) select lane, count(*), count(*) from new group by lane
  ),
  noted as (
    insert into schedule_run (schedule, slot, job_id) select number, slot, id from new
  )
  select array_agg(id order by id) into v_ids from new;
  return v_ids;
end $$;
