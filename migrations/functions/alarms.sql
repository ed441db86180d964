-- Alarms: reading them, and how a watcher changes them.

-- One row with the alarms, the state of the targets, and the silences that have not ended.
create or replace function read_alarms(out alarms jsonb, out targets jsonb, out silences jsonb)
language sql stable
security definer
set search_path from current
as $$
  select
    (select coalesce(jsonb_agg(to_jsonb(known) order by alarm, queue, job_type), '[]') from alarm as known),
    (select coalesce(jsonb_agg(to_jsonb(target) order by name), '[]')
     from (select name, url_hash, gone_since, failing_since, delivered_at, alarm_target.status, alarm_target.error,
                  coalesce(pending, 0) as pending
           from alarm_target
           full join (select target as name, count(*) as pending from delivery where state = 'pending' group by target)
             as waiting using (name)) as target),
    (select coalesce(jsonb_agg(to_jsonb(alarm_silence) order by alarm), '[]') from alarm_silence where until > now())
$$;

-- Applies a watcher's changes, and writes a delivery for each notice and each target that is switched on. Another watcher
-- may have been faster: a change applies only to the version that it was made from, and a change that does not apply sends
-- no notice. Returns the keys of the changes that applied.
create or replace function change_alarms(p_changes jsonb, p_targets jsonb)
returns table (alarm text, queue text, job_type text)
language plpgsql
security definer
set search_path from current
set enable_nestloop = off -- the planner expects a hundred changes; when a drain stops there may be one for each queue
set jit = off
as $$
#variable_conflict use_column
begin
  -- One watcher at a time, so that two that change the same alarms in another order cannot deadlock. The statement below
  -- sees what the watcher before has committed.
  perform pg_advisory_xact_lock(hashtextextended('sluice.alarms.' || current_schema(), 0));
  return query
  with change as materialized (
    select *
    from jsonb_to_recordset(p_changes) as change(
      alarm text, queue text, job_type text, version bigint, phase text, since timestamptz, changed_at timestamptz,
      recent boolean[], clear_rounds int, notified text, notified_at timestamptz, severity text, value float8,
      threshold float8, summary text, about text, notice jsonb)
  ),
  added as (
    insert into alarm (alarm, queue, job_type, version, phase, since, changed_at, recent, clear_rounds,
                       notified, notified_at, severity, value, threshold, summary)
    select alarm, queue, job_type, 1, phase, since, changed_at, recent, clear_rounds,
           notified, notified_at, severity, value, threshold, summary
    from change where version is null
    on conflict do nothing
    returning alarm, queue, job_type
  ),
  changed as (
    update alarm as known
    set version = known.version + 1, phase = change.phase, since = change.since, changed_at = change.changed_at,
        recent = change.recent, clear_rounds = change.clear_rounds,
        notified = change.notified, notified_at = change.notified_at,
        severity = change.severity, value = change.value, threshold = change.threshold, summary = change.summary
    from change
    where known.alarm = change.alarm
      and coalesce(known.queue, '') = coalesce(change.queue, '') and coalesce(known.job_type, '') = coalesce(change.job_type, '')
      and known.version = change.version
    returning known.alarm, known.queue, known.job_type
  ),
  applied as (
    select change.*
    from (select * from added union all select * from changed) as done
    join change on change.alarm = done.alarm
      and coalesce(change.queue, '') = coalesce(done.queue, '') and coalesce(change.job_type, '') = coalesce(done.job_type, '')
  ),
  logged as (
    insert into alarm_event (alarm, queue, job_type, event, severity, value, threshold, since, summary)
    select applied.alarm, applied.queue, applied.job_type, case applied.phase when 'firing' then 'firing' else 'resolved' end,
           applied.severity, applied.value, applied.threshold, applied.since, applied.summary
    from applied
    left join alarm as before on before.alarm = applied.alarm -- in the statement's snapshot: as it was before
      and coalesce(before.queue, '') = coalesce(applied.queue, '') and coalesce(before.job_type, '') = coalesce(applied.job_type, '')
    where (applied.phase = 'firing') <> (coalesce(before.phase, 'ok') = 'firing')
  ),
  delivered_later as (
    insert into delivery (id, target, about, notice)
    select new_id(), target.name, applied.about, applied.notice
    from applied
    cross join jsonb_to_recordset(p_targets) as target(name text, url_hash text)
    where jsonb_typeof(applied.notice) = 'object'
      and not exists (
        select from alarm_target as known
        where known.name = target.name and known.url_hash = target.url_hash and known.gone_since is not null)
  )
  select alarm, queue, job_type from applied;
end $$;

-- Silences an alarm until a time. A time in the past ends the silence.
create or replace function silence_alarm(p_actor text, p_alarm text, p_until timestamptz, p_reason text default null)
returns void
language plpgsql
security definer
set search_path from current
as $$
declare
  v_before timestamptz := (select until from alarm_silence where alarm = p_alarm and until > now());
begin
  if p_until not between timestamptz '1970-01-01 00:00+00' and timestamptz '9999-12-31 23:59:59.999+00' then
    perform refuse('until: not between 1970 and 9999');
  end if;
  insert into alarm_silence as known (alarm, until, actor, reason) values (p_alarm, p_until, p_actor, p_reason)
  on conflict (alarm) do update set until = excluded.until, actor = excluded.actor, reason = excluded.reason;
  insert into alarm_event (alarm, event, until, actor, reason)
  select p_alarm, case when p_until > now() then 'silenced' else 'unsilenced' end,
         case when p_until > now() then p_until end, p_actor, p_reason
  where p_until > now() or v_before is not null;
  perform write_audit(p_actor, 'silence', 'alarm ' || p_alarm,
                      jsonb_build_object('until', v_before),
                      jsonb_strip_nulls(jsonb_build_object('until', p_until, 'reason', p_reason)));
end $$;

-- What happened to alarms, newest first. p_before: the last id of the page before.
create or replace function list_alarm_events(p_before bigint, p_limit int) returns setof alarm_event
language sql stable
security definer
set search_path from current
as $$
  select * from alarm_event where p_before is null or id < p_before order by id desc limit p_limit
$$;

-- Audits that somebody sent a test notice, and how each target answered.
create or replace function audit_test_notice(p_actor text, p_targets jsonb) returns void
language sql
security definer
set search_path from current
as $$
  select write_audit(p_actor, 'test alarms', 'alarms', null, jsonb_build_object('targets', p_targets))
$$;
