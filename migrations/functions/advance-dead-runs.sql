-- advance dead runs: one step of a run (dead-runs.sql).
--
-- With a rate, a step takes the jobs whose time comes within the next `p_seconds`, and spreads them over that time. The caller
-- knows when somebody comes again: soon if there is a clock, else with the next cron. Time that was lost is not made up for.

-- JSON merge patch (RFC 7396). In SQL, so that what it leaves alone stays as exact as it was stored.
create or replace function merge_patch(p_target jsonb, p_patch jsonb) returns jsonb
language plpgsql immutable as $$
declare
  v_merged jsonb := case when jsonb_typeof(p_target) = 'object' then p_target else '{}' end;
  v_field  record;
begin
  if jsonb_typeof(p_patch) <> 'object' then
    return p_patch;
  end if;
  for v_field in select key, value from jsonb_each(p_patch) loop
    v_merged := case when v_field.value = 'null' then v_merged - v_field.key
                     else v_merged || jsonb_build_object(v_field.key, merge_patch(v_merged -> v_field.key, v_field.value)) end;
  end loop;
  return v_merged;
end $$;

-- How many jobs a step may take now: the first is due in seconds_ahead, and each of the others seconds_apart later.
create or replace function dead_run_quota(
  p_run dead_run, p_seconds float8, out jobs int, out seconds_ahead float8, out seconds_apart float8
)
language plpgsql stable as $$
declare
  c_jobs constant int := 1000; -- a step holds its locks for some 100 ms
begin
  seconds_apart := coalesce(60.0 / p_run.per_minute, 0);
  seconds_ahead := greatest(extract(epoch from p_run.next_at - now()), -2); -- a step may be somewhat late
  jobs := least(c_jobs, p_run.max_jobs - p_run.done);
  if p_run.per_minute is not null then
    jobs := least(jobs, 1 + floor((p_seconds - seconds_ahead) / seconds_apart));
  end if;
end $$;

-- The next jobs of a run: { from, through, is_last, ids }. It looks at a bounded number of dead letters. `through` is how far the run
-- has come when these are done.
create or replace function next_dead_letters(p_run dead_run, p_jobs int) returns jsonb
language plpgsql stable
set enable_seqscan = off
set jit = off
as $$
declare
  c_looked constant int := 10000;
  v_lanes  int[] := lanes_matching(p_run.type, p_run.queue);
  v_ahead  jsonb;
begin
  with looked as materialized (
    select id, closed_at, row_number() over (order by closed_at, id) as number,
           lane = any(v_lanes) and (p_run.reason is null or reason = p_run.reason)
             and (p_run.fingerprint is null or fingerprint = p_run.fingerprint) is true as matches
    from closed
    where status = 'dead' and (closed_at, id) > (p_run.passed_at, p_run.passed_id) and closed_at <= p_run.until
    order by closed_at, id limit c_looked
  ),
  chosen as materialized (
    select id, number, closed_at from looked where matches order by number limit p_jobs
  ),
  through as (
    select case when (select count(*) from chosen) = p_jobs then (select max(number) from chosen)
                else (select max(number) from looked) end as number
  )
  select jsonb_build_object(
           'from', jsonb_build_object('at', p_run.passed_at, 'id', p_run.passed_id),
           'through', (select jsonb_build_object('at', closed_at, 'id', id) from looked join through using (number)),
           'is_last', (select count(*) from looked) < c_looked
                      and (select count(*) from chosen) < p_jobs,
           'ids', coalesce((select jsonb_agg(id order by number) from chosen), '[]'))
  into v_ahead;
  return v_ahead;
end $$;

-- One step of a run that may go on: of the one that has waited longest. Answers null if there is none, or
-- { run_id, queues, check }. Of a run with a patch it changes nothing: `check` is what next_dead_letters found, with the jobs
-- as they would be. The caller checks them and calls advance_dead_run.
create or replace function advance_dead_runs(p_seconds float8) returns jsonb
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_run dead_run;
begin
  select * into v_run from dead_run
  where state = 'running' and next_at <= now() + make_interval(secs => p_seconds)
  order by next_at, id limit 1 for update skip locked;
  if not found then
    return null;
  elsif v_run.patch is null then
    return advance_dead_run(v_run.id, p_seconds, null);
  end if;
  return jsonb_build_object('run_id', v_run.id, 'queues', '[]'::jsonb, 'check', patched_jobs(v_run, p_seconds));
end $$;

-- The next jobs of a run with a patch, as many as are small enough together.
create or replace function patched_jobs(p_run dead_run, p_seconds float8) returns jsonb
language plpgsql stable
set enable_seqscan = off
set jit = off
as $$
declare
  c_jobs constant int := 50; -- 3 MB of payloads at most
  v_ahead jsonb := next_dead_letters(p_run, least((dead_run_quota(p_run, p_seconds)).jobs, c_jobs));
begin
  return v_ahead || jsonb_build_object('type', p_run.type, 'jobs', (
    select coalesce(jsonb_agg(jsonb_build_object('id', job.id, 'payload', patched.payload,
                                                 'fault', payload_fault_of(patched.payload))), '[]')
    from jsonb_array_elements_text(v_ahead -> 'ids') as chosen(id)
    join job on job.id = chosen.id::uuid
    cross join lateral (select merge_patch(job.payload, p_run.patch) as payload offset 0) as patched));
end $$;

-- Takes the step. p_ahead is what the caller has checked, with its `skips`: [{ job_id, reason }]. It does nothing if somebody else
-- has taken a step since, or the run has ended. Answers as advance_dead_runs does.
create or replace function advance_dead_run(p_id bigint, p_seconds float8, p_ahead jsonb) returns jsonb
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  c_skips constant int := 10; -- of them are kept
  v_run   dead_run;
  v_quota record;
  v_ahead jsonb := p_ahead;
  v_skips jsonb := coalesce(p_ahead -> 'skips', '[]');
  v_ids   uuid[];
begin
  select * into v_run from dead_run where id = p_id and state = 'running' for update;
  if not found or v_run.next_at > now() + make_interval(secs => p_seconds) then
    return null;
  end if;
  v_quota := dead_run_quota(v_run, p_seconds);
  v_ahead := coalesce(p_ahead, next_dead_letters(v_run, v_quota.jobs));
  if v_ahead -> 'from' <> jsonb_build_object('at', v_run.passed_at, 'id', v_run.passed_id) then
    return null;
  end if;
  v_ids := array(
    select id::uuid from jsonb_array_elements_text(v_ahead -> 'ids') as chosen(id)
    where id not in (select skip ->> 'job_id' from jsonb_array_elements(v_skips) as skip) order by 1);
  v_ids := act_on_dead(v_run, v_ids, v_quota.seconds_apart, v_quota.seconds_ahead);

  update dead_run
  set done = done + cardinality(v_ids), skipped = skipped + jsonb_array_length(v_skips),
      skips = jsonb_path_query_array(skips || v_skips, '$[0 to $last]', jsonb_build_object('last', c_skips - 1)),
      passed_at = coalesce((v_ahead -> 'through' ->> 'at')::timestamptz, passed_at),
      passed_id = coalesce((v_ahead -> 'through' ->> 'id')::uuid, passed_id),
      next_at = now() + make_interval(secs => v_quota.seconds_ahead + v_quota.seconds_apart * cardinality(v_ids))
  where id = p_id;
  if (v_ahead ->> 'is_last')::boolean or v_run.done + cardinality(v_ids) >= v_run.max_jobs then
    perform end_dead_run(v_run, p_seconds);
  end if;
  return jsonb_build_object('run_id', p_id, 'check', null, 'queues', (
    select coalesce(jsonb_agg(distinct queue), '[]') from job join lane using (lane)
    where v_run.action = 'replay' and job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)]));
end $$;

-- Nothing is left to take. The run ends when its last job is due: until then it can be stopped.
create or replace function end_dead_run(p_run dead_run, p_seconds float8) returns void
language plpgsql as $$
declare
  v_until timestamptz := (select max(until) from dead_run_ahead where run_id = p_run.id and until > now());
begin
  if v_until is not null then
    -- A step is taken p_seconds before its time: this one when nothing lies ahead.
    update dead_run set passed_at = 'infinity', next_at = v_until + make_interval(secs => p_seconds) where id = p_run.id;
    return;
  end if;
  update dead_run set state = 'done', ended_at = now() where id = p_run.id;
  delete from dead_run_ahead where run_id = p_run.id;
  perform write_audit(p_run.actor, 'end run', 'run ' || p_run.id, null, shown_run(p_run.id));
end $$;

-- Answers those that were still dead.
create or replace function act_on_dead(p_run dead_run, p_ids uuid[], p_seconds_apart float8, p_seconds_ahead float8)
returns uuid[]
language plpgsql as $$
declare
  v_before record;
begin
  if p_run.action = 'discard' then
    return discard_dead(p_ids);
  end if;
  if p_run.per_minute is not null then
    v_before := rows_of_dead(p_run, p_ids);
  end if;
  if p_run.patch is not null then
    -- Whoever wants to change these jobs too waits for their rows in `closed`.
    perform from closed where id = any(p_ids) and status = 'dead' order by id for update;
    update job set payload = merge_patch(payload, p_run.patch)
    where id = any(array(select id from closed where id = any(p_ids) and status = 'dead'))
      and id >= p_ids[1] and id <= p_ids[cardinality(p_ids)];
  end if;
  p_ids := revive(p_ids, null, p_seconds_apart, p_seconds_ahead);
  if p_run.per_minute is not null then
    perform note_ahead(p_run, p_ids, v_before.dead, v_before.payloads);
  end if;
  perform note_replayed(p_run, p_ids);
  return p_ids;
end $$;
