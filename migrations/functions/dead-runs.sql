-- Dead runs: replay or discard every dead letter that matches a filter, a bounded number in each step. All that a run knows is in
-- its row, so whoever comes next goes on where the last step was committed: the request that started it, the clock, or a cron.
--
-- A run goes through the dead letters in the order of their deaths, and only forward, up to a fixed time. So a job that dies
-- again is not taken again. A step locks the run's row: two steps of one run never overlap. Two runs over the same jobs lock the
-- jobs in the order of their ids, as every replay and discard does. The first one gets a job, and the other finds it gone.
-- advance-dead-runs.sql takes the steps.

-- Answers the run. Without p_until it takes what is dead now.
create or replace function start_dead_run(
  p_actor text, p_action text, p_type text, p_reason text, p_fingerprint bigint, p_queue text, p_until timestamptz,
  p_max_jobs bigint, p_per_minute int, p_patch jsonb, p_note text
) returns jsonb
language plpgsql
security definer
set search_path from current
as $$
declare
  v_id bigint;
begin
  insert into dead_run (action, type, reason, fingerprint, queue, until, max_jobs, per_minute, patch, note, actor, matched)
  values (p_action, p_type, p_reason, p_fingerprint, p_queue, least(p_until, now()), p_max_jobs, p_per_minute, p_patch, p_note,
          p_actor, least(count_dead(p_type, p_reason, p_fingerprint, p_queue, p_until), p_max_jobs))
  returning id into v_id;
  perform write_audit(p_actor, p_action || ' run', 'run ' || v_id, null, shown_run(v_id));
  return shown_run(v_id);
end $$;

-- A run as it is shown, null if there is none. What it has planned and is not due yet counts as not done.
create or replace function shown_run(p_id bigint) returns jsonb
language sql stable
security definer
set search_path from current
as $$
  select jsonb_build_object(
           'id', id, 'action', action, 'type', type, 'reason', reason, 'fingerprint', lpad(to_hex(fingerprint), 16, '0'), 'queue', queue,
           'until', until, 'max_jobs', max_jobs, 'per_minute', per_minute, 'patch', patch, 'note', note, 'actor', actor,
           'state', state, 'matched', matched, 'done', done - ahead, 'skipped', skipped, 'skips', skips,
           'remaining', case when state = 'done' then 0 else greatest(matched - done + ahead - skipped, 0) end,
           'started_at', started_at, 'ended_at', ended_at)
  from dead_run cross join lateral (select count_ahead(p_id) as ahead) as planned where id = p_id
$$;

-- Newest first.
create or replace function list_dead_runs(p_before bigint, p_limit int) returns setof jsonb
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select shown_run(id)
  from (select id from dead_run where p_before is null or id < p_before order by id desc limit p_limit) as page
  order by id desc
$$;

-- Stops a run. What it has not come to stays dead, and what it has planned is dead again. Answers { applied, run }; null: there is no such run.
create or replace function stop_dead_run(p_actor text, p_id bigint) returns jsonb
language plpgsql
security definer
set search_path from current
as $$
declare
  v_before     jsonb;
  v_is_running boolean;
  v_back       int;
begin
  select state = 'running' into v_is_running from dead_run where id = p_id for update; -- waits for a step
  if v_is_running then
    v_before := shown_run(p_id);
    v_back := stop_ahead(p_id);
    update dead_run set state = 'stopped', ended_at = now(), done = done - v_back where id = p_id;
    perform write_audit(p_actor, 'stop run', 'run ' || p_id, v_before, shown_run(p_id));
  end if;
  return case when v_is_running is not null then jsonb_build_object('applied', v_is_running, 'run', shown_run(p_id)) end;
end $$;

-- Whether a step of a run can be taken.
create or replace function has_due_runs(p_seconds float8) returns boolean
language sql stable
security definer
set search_path from current
as $$
  select exists (select from dead_run where state = 'running' and next_at <= now() + make_interval(secs => p_seconds))
$$;
