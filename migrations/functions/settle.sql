-- settle: what became of up to a thousand claimed jobs. Each is fenced: it applies only while the lease of its
-- key still holds the job. The answer has the new status of each, or null where it did not apply.
--
-- Outcomes come in the order of the ids, { outcome, output?, message?, detail?, seconds?, uses? }; without any, all are
-- completed:
--   complete   done, with an output if there is one
--   retry      failed: again in `seconds`, or dead (exhausted) when the attempts are used up
--   bury       failed: dead (fatal) at once
--   snooze     again in `seconds`, and the attempt does not count
--   release    again at once, and the attempt does not count
-- `uses` is how many attempts the claim counts as, where that is not the usual: a reconciled job's run is a snooze that
-- uses 1, and the look after it uses 0, since the two are one attempt.

create or replace function settle(p_ids uuid[], p_keys uuid[], p_outcomes jsonb default null)
returns text[]
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_tids        tid[];
  v_held        uuid[];
  v_settled     settled_job[];
  v_places      bigint[]; -- of each in what was asked
  v_some_failed boolean;
  v_dead        uuid[];
begin
  -- Most settles: all that is left of one claim was completed, and its ids lie in one bucket. Whole rows move.
  if p_outcomes is null and p_keys[1] = all(p_keys)
     and end_of_bucket(p_ids[1]) = end_of_bucket(p_ids[cardinality(p_ids)]) then
    select array_agg(tid) filter (where place = 1), array_agg(id order by id) into v_tids, v_held
    from (
      select ctid as tid, ids from lease where key = p_keys[1] order by lock_order for update
    ) as held cross join lateral unnest(ids) with ordinality as entry(id, place);
    if v_held = p_ids then
      with gone as (
        delete from lease where ctid = any(v_tids) returning lane, started_at, ids, attempts
      ),
      written as (
        insert into done (hi_id, lo_id, started_at, finished_at, lane, ids, attempts)
        select ids[cardinality(ids)], ids[1], started_at, now(), lane, ids, attempts from gone
      )
      insert into ledger (lane, leased, completed, processing_seconds)
      select lane, -cardinality(ids), cardinality(ids), date_part('epoch', now() - started_at) from gone;
      return array_fill('completed'::text, array[cardinality(p_ids)]);
    end if;
  end if;

  perform lock_leases(p_keys);
  with asked as materialized (
    select *
    from rows from (
      unnest(p_ids), unnest(p_keys),
      jsonb_to_recordset(coalesce(p_outcomes, '[]'))
        as (outcome text, output jsonb, message text, detail jsonb, seconds float8, uses int)
    ) with ordinality as asked(id, key, outcome, output, message, detail, seconds, uses, asked_place)
  ),
  held as materialized (
    select lease.ctid as tid, lease.key, lease.lane, lease.started_at, entry.*
    from lease
    cross join lateral unnest(ids, attempts, abandonments) with ordinality as entry(id, attempt, abandonments, place)
    where lease.key = any(p_keys)
  ),
  matched as materialized (
    select distinct on (held.id, held.key) -- asked for twice: the first counts
           held.*, case when p_outcomes is null then 'complete' else asked.outcome end as outcome, asked.output,
           asked.message, asked.detail, asked.seconds, asked.uses, asked.asked_place
    from held join asked on asked.id = held.id and asked.key = held.key
    order by held.id, held.key, asked.asked_place
  ),
  remaining as materialized (
    select tid,
           array_agg(id order by place) as ids,
           case when count(attempt) > 0 then array_agg(attempt order by place) end as attempts,
           case when count(abandonments) > 0 then array_agg(abandonments order by place) end as abandonments
    from held
    where tid = any(array(select tid from matched))
      and not exists (select from matched where matched.id = held.id and matched.key = held.key)
    group by tid
  ),
  emptied as (
    delete from lease
    where ctid = any(array(select tid from matched except select tid from remaining))
  ),
  shrunk as (
    update lease
    set ids = remaining.ids, attempts = remaining.attempts, abandonments = remaining.abandonments
    from remaining
    where lease.ctid = remaining.tid
  )
  select array_agg(row(id, lane,
                       coalesce(attempt, 1)
                         + case when outcome in ('snooze', 'release') then coalesce(uses, 0) else coalesce(uses, 1) - 1 end,
                       coalesce(abandonments, 0), started_at, outcome, nullif(output, 'null'), left(message, 4000), detail,
                       case when outcome = 'release' then 0 else coalesce(seconds, 0) end)::settled_job order by id),
         array_agg(asked_place order by id),
         bool_or(outcome <> 'complete')
  into v_settled, v_places, v_some_failed
  from matched;

  if v_some_failed then
    perform complete_jobs(array(select job from unnest(v_settled) as job where job.outcome = 'complete'));
    v_dead := fail_jobs(array(select job from unnest(v_settled) as job where job.outcome <> 'complete'));
  else
    perform complete_jobs(v_settled);
  end if;

  return array(
    select case when job.id is null then null
                when job.outcome = 'complete' then 'completed'
                when job.id = any(v_dead) then 'dead'
                else 'pending' end
    from unnest(p_ids) with ordinality as asked(id, position)
    left join unnest(v_settled, v_places)
      as job(id, lane, attempt, abandonments, started_at, outcome, output, message, detail, seconds, place)
      on job.place = asked.position
    order by asked.position);
end $$;

-- Whoever settles, extends or reaps the same lease waits here, or makes us wait. The next statement takes a fresh
-- snapshot and so sees what was left. An extend that we waited for may have put new rows in the place of the old
-- one, which are not locked yet: hence again, until there is no other.
--
-- All who wait go by the key and within it by the lock order, which is higher for a row that comes later: so they
-- meet in the same order, and none waits for another crosswise.
create or replace function lock_leases(p_keys uuid[]) returns void
language plpgsql as $$
declare
  v_key    uuid;
  v_locked     tid[];
begin
  foreach v_key in array array(select distinct unnest(p_keys) order by 1) loop
    loop
      v_locked := array(select ctid from lease where key = v_key order by lock_order for update);
      exit when not exists (select from lease where key = v_key and ctid <> all(v_locked));
    end loop;
  end loop;
end $$;

-- Into `done`: one packed row for each lane and 65-second bucket of ids, so that one job can be found by its id.
create or replace function complete_jobs(p_jobs settled_job[]) returns void
language plpgsql as $$
begin
  with packed as (
    select lane, min(started_at) as started_at, array_agg(id order by id) as ids,
           case when max(attempt) > 1 then array_agg(attempt order by id) end as attempts
    from unnest(p_jobs)
    group by lane, substring(uuid_send(id) for 4)
  ),
  written as (
    insert into done (hi_id, lo_id, started_at, finished_at, lane, ids, attempts)
    select ids[cardinality(ids)], ids[1], started_at, now(), lane, ids, attempts from packed
  ),
  kept as (
    insert into output (id, output)
    select id, output from unnest(p_jobs) where output is not null
  )
  insert into ledger (lane, leased, completed, processing_seconds)
  select lane, -count(*), count(*), date_part('epoch', now() - started_at) from unnest(p_jobs) group by lane, started_at;
end $$;

-- Everything but completion: back to `ready` or `scheduled`, or closed for good. Returns the ids that are now dead.
create or replace function fail_jobs(p_jobs settled_job[], p_last_reason text default 'exhausted') returns uuid[]
language plpgsql as $$
declare
  v_dead     uuid[];
  v_earliest timestamptz; -- run_at
  v_ids      uuid[] := array(select id from unnest(p_jobs) order by 1);
begin
  if cardinality(p_jobs) = 0 then
    return '{}';
  end if;
  with judged as materialized (
    select failed.*,
           case when failed.outcome = 'bury' then 'fatal'
                when failed.outcome = 'retry' and failed.attempt >= job.max_attempts then p_last_reason
           end as reason,
           -- A snooze and a release give the attempt back. A look after the last run is one claim more than the maximum.
           least(failed.attempt - case when failed.outcome in ('snooze', 'release') then 1 else 0 end,
                 job.max_attempts) as used
    from unnest(p_jobs) as failed
    join job on job.id = failed.id
      and job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)]
  ),
  buried as (
    insert into closed (id, status, reason, closed_at, started_at, lane, attempt, abandonments)
    select id, 'dead', reason, now(), started_at, lane, used, abandonments from judged where reason is not null
  ),
  postponed as (
    insert into scheduled (run_at, id, lane, attempt, abandonments)
    select clock_timestamp() + make_interval(secs => seconds), id, lane, used, abandonments
    from judged where reason is null and seconds > 0
    returning run_at
  ),
  readied as (
    insert into ready (seq, id, lane, attempt, abandonments)
    select nextval('ready_seq'), id, lane, used, abandonments
    from judged where reason is null and seconds <= 0
  ),
  remembered as (
    insert into failed_attempt (id, attempt, started_at, failed_at, message, detail)
    select id, used, started_at, now(), coalesce(message, ''), detail
    from judged where outcome in ('retry', 'bury')
  ),
  booked as (
    insert into ledger (lane, leased, pending, scheduled, failed, dead)
    select lane, -count(*), nullif(count(*) filter (where reason is null), 0),
           nullif(count(*) filter (where reason is null and seconds > 0), 0),
           nullif(count(*) filter (where outcome in ('retry', 'bury')), 0),
           nullif(count(*) filter (where reason is not null), 0)
    from judged group by lane
  )
  select coalesce(array_agg(id), '{}'), (select min(run_at) from postponed) into v_dead, v_earliest
  from judged where reason is not null;
  perform keep_reachable(v_earliest);
  return v_dead;
end $$;

-- A handler's own transaction completes its job: both or neither. False: the lease is lost, roll back.
create or replace function complete(job_id uuid, lease_key uuid, output jsonb default null) returns boolean
language sql
security definer
set search_path from current
as $$
  select settle(array[job_id], array[lease_key],
                case when output is not null
                     then jsonb_build_array(jsonb_build_object('outcome', 'complete', 'output', output)) end)
         = array['completed']
$$;
