-- settle: applies the outcomes of up to a thousand claimed jobs. Each outcome is fenced: it applies only while a lease with
-- the given key still holds the job. The answer has the new status of each job, or null where it did not apply.
--
-- Outcomes come in the order of the ids, { outcome, output?, message?, detail?, seconds?, uses?, next?, signal?, jobs? }. Null means that all
-- jobs are completed without an output:
--   complete   done, with an output if there is one; `next` is a job that continues its chain (continue.sql)
--   retry      failed: again in `seconds`, or dead (exhausted) when the attempts are used up
--   bury       failed: dead (fatal) at once
--   snooze     again in `seconds`, and the attempt does not count
--   release    again at once, and the attempt does not count
--   suspend    blocked until the signal has come, or all the jobs have ended, or `seconds` have passed (suspend.sql); the
--              attempt does not count
-- `uses` is how many attempts the claim counts as, where that is not the usual number: a reconciled job's run is a snooze
-- that uses 1, and the look after it uses 0, since the two are one attempt.
-- A job that somebody asked to stop is cancelled by every outcome but a completion (cancel.sql).
--
-- Jobs leave their leases in one of two ways, which agree. Most settles complete all that one claim still holds, with or
-- without outputs and successors: complete_whole_leases moves whole rows from `lease` to `done`. Everything else goes job by
-- job (remove_from_leases), which for whole leases would do the same: delete each lease, and write the same ids to `done` and
-- the same numbers to the books.
--
-- Jobs with keys hold turns (dispatch.sql). The turn of an ordered key stays with the first job of the key that runs again,
-- or with a dead one that blocks the key; otherwise it goes back. If a job of a run did not complete, the rest of its run
-- goes back to waiting with it ("withdraw"), at the places that it had.

-- Whether all of these jobs complete, in attempts that count as usual. Inlined.
create or replace function only_complete(outcomes jsonb, jobs int) returns boolean
language sql immutable
return jsonb_array_length(outcomes) = jobs
  and not jsonb_path_exists(outcomes, '$[*] ? (!(@.outcome == "complete") || exists(@.uses))');

create or replace function settle(p_ids uuid[], p_keys uuid[], p_outcomes jsonb default null)
returns text[]
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return (select settled from settle_jobs(p_ids, p_keys, p_outcomes, null));
end $$;

-- The same for a claim, which has these settings already. The claim is going to dispatch p_queue: grants of that queue may be
-- answered in place of being written down (return_turns_of_leases).
create or replace function settle_jobs(
  p_ids uuid[], p_keys uuid[], p_outcomes jsonb, p_queue text, out settled text[], out ended_grants bigint[]
)
language plpgsql as $$
declare
  v_is_done boolean;
  v_request record;
  v_jobs    settled_job[];
  v_failed  settled_job[];
  v_dead      uuid[] := '{}';
  v_cancelled uuid[] := '{}';
begin
  if p_outcomes is null or only_complete(p_outcomes, cardinality(p_ids)) then
    select are_whole, complete_whole_leases.ended_grants into v_is_done, ended_grants
    from complete_whole_leases(p_ids, p_keys, p_outcomes, p_queue);
  end if;
  if v_is_done then
    settled := array_fill('completed'::text, array[cardinality(p_ids)]);
    return;
  end if;

  perform lock_leases(p_keys);
  if p_outcomes is null then
    v_jobs := remove_from_leases(p_ids, p_keys, null);
    perform complete_jobs(v_jobs);
  else
    v_request := with_rest_of_runs(p_ids, p_keys, p_outcomes);
    v_jobs := remove_from_leases(v_request.ids, v_request.keys, v_request.outcomes);
    v_failed := array(select job from unnest(v_jobs) as job where job.outcome <> 'complete');
    perform complete_jobs(array(select job from unnest(v_jobs) as job where job.outcome = 'complete'), v_failed);
    select dead, cancelled into v_dead, v_cancelled from fail_jobs(v_failed);
  end if;
  if exists (select from unnest(v_jobs) where ended_grant is not null) then
    perform return_emptied_grants(v_jobs);
  end if;

  settled := array(
    select case when job.id is null then null
                when job.outcome = 'complete' then 'completed'
                when job.id = any(v_dead) then 'dead'
                when job.id = any(v_cancelled) then 'cancelled'
                when job.outcome = 'suspend' and exists (select from blocked where blocked.id = job.id) then 'blocked'
                else 'pending' end
    from unnest(p_ids) with ordinality as request(id, request_index)
    left join unnest(v_jobs) as job on job.request_index = request.request_index
    order by request.request_index);
end $$;

-- are_whole: these jobs are all that the leases of one key hold, and they are completed now. p_outcomes: null, or only
-- completions.
--
-- It waits for nobody twice: where another transaction split the lease while this one waited for its lock, the rows that
-- are locked here do not hold all of the jobs, and the other way is taken. What is locked cannot change any more, and
-- the next statement has a fresh snapshot that sees it.
create or replace function complete_whole_leases(
  p_ids uuid[], p_keys uuid[], p_outcomes jsonb, p_queue text, out are_whole boolean, out ended_grants bigint[]
)
language plpgsql as $$
declare
  v_tids   tid[];
  v_ids    uuid[];
  v_turns  boolean;
  v_linked boolean;
begin
  if p_keys[1] = all(p_keys)
     and end_of_bucket(p_ids[1]) = end_of_bucket(p_ids[cardinality(p_ids)]) then -- else `done` needs several rows
    select array_agg(tid) filter (where place = 1), array_agg(id order by id), bool_or(has_turns), bool_or(linked)
    into v_tids, v_ids, v_turns, v_linked
    from (
      select ctid as tid, ids, keys is not null as has_turns, linked
      from lease where key = p_keys[1] order by lock_order for update
    ) as locked cross join lateral unnest(ids) with ordinality as entry(id, place);
  end if;
  are_whole := v_ids is not distinct from p_ids;
  if not are_whole then
    return;
  end if;
  if v_turns then
    ended_grants := return_turns_of_leases(v_tids, p_queue);
  end if;

  with removed as (
    delete from lease where ctid = any(v_tids) returning lane, started_at, ids, attempts, worker
  ),
  written as (
    insert into done (hi_id, lo_id, started_at, finished_at, lane, ids, attempts, worker)
    select ids[cardinality(ids)], ids[1], started_at, now(), lane, ids, attempts, worker from removed
  )
  insert into ledger (lane, leased, completed, processing_seconds)
  select lane, -cardinality(ids), cardinality(ids), date_part('epoch', now() - started_at) from removed;
  if p_outcomes is not null then
    v_ids := keep_results(p_ids, p_outcomes);
  end if;
  if v_linked then
    perform note_moves(v_ids, 'processing', 'completed');
  elsif not v_linked then -- each is the only job of its chain
    perform end_chains(v_ids, true);
  end if;
end $$;

-- What completed jobs leave: their outputs, and their successors. Answers with the jobs that have no successor: their chains end.
-- Called when the jobs have left their leases, so no other settle can do the same. The types of the values tell: a path
-- that compares a value looks into lists.
create or replace function keep_results(p_ids uuid[], p_outcomes jsonb) returns uuid[]
language plpgsql as $$
declare
  v_going uuid[];
  v_next  jsonb[];
begin
  if jsonb_path_exists(p_outcomes, '$[*] ? (@.output.type() != "null")') then
    insert into output (id, output)
    select p_ids[number], outcome -> 'output'
    from jsonb_array_elements(p_outcomes) with ordinality as listed(outcome, number)
    where jsonb_typeof(outcome -> 'output') <> 'null';
  end if;
  if not jsonb_path_exists(p_outcomes, '$[*] ? (@.next.type() == "object")') then
    return p_ids;
  elsif cardinality(p_ids) = 1 then -- a step of a chain
    perform continue_job(p_ids[1], p_outcomes -> 0 -> 'next');
    return '{}';
  end if;
  select array_agg(p_ids[number] order by number), array_agg(outcome -> 'next' order by number)
  into v_going, v_next
  from jsonb_array_elements(p_outcomes) with ordinality as listed(outcome, number)
  where jsonb_typeof(outcome -> 'next') = 'object';
  perform continue_jobs(v_going, v_next);
  return array(select unnest(p_ids) except select unnest(v_going));
end $$;

-- Takes the jobs out of their leases and returns those that were still in them, each with its outcome. Leases that become
-- empty are deleted, the others keep the rest of their jobs.
--
-- One statement deletes and updates rows of the same table by their ctid. That is right only because lock_leases ran
-- before it as a statement of its own: nobody else can change these rows any more, and under READ COMMITTED each
-- statement takes a fresh snapshot, which sees them as they were locked.
create or replace function remove_from_leases(p_ids uuid[], p_keys uuid[], p_outcomes jsonb) returns settled_job[]
language plpgsql as $$
declare
  v_jobs settled_job[];
begin
  with request as materialized (
    select *
    from rows from (
      unnest(p_ids), unnest(p_keys),
      jsonb_to_recordset(coalesce(p_outcomes, '[]'))
        as (outcome text, output jsonb, message text, detail jsonb, seconds float8, uses int, next jsonb, signal jsonb, jobs jsonb)
    ) with ordinality
      as request(id, key, outcome, output, message, detail, seconds, uses, next, signal, jobs, request_index)
  ),
  leased as materialized (
    select lease.ctid as tid, lease.key, lease.lane, lease.started_at, lease.linked, lease.worker, lease.grant_id,
           lease.apart, entry.*
    from lease
    cross join lateral unnest(ids, attempts, abandonments, keys, places) with ordinality
      as entry(id, attempt, abandonments, turn_key, turn_place, place)
    where lease.key = any(p_keys)
  ),
  matched as materialized (
    select distinct on (leased.id, leased.key) -- if a job was named twice, the first counts
           leased.*,
           case when p_outcomes is null then 'complete'
                when request.outcome = 'suspend' and coalesce(signal, jobs) is null then 'snooze'
                else request.outcome end as outcome,
           case when coalesce(next, signal, jobs) is not null
                then jsonb_build_object('next', next, 'signal', signal, 'jobs', jobs) end as more,
           request.output, request.message, request.detail, request.seconds, request.uses, request.request_index
    from leased join request on request.id = leased.id and request.key = leased.key
    order by leased.id, leased.key, request.request_index
  ),
  remaining as materialized (
    select tid,
           array_agg(id order by place) as ids,
           case when count(attempt) > 0 then array_agg(attempt order by place) end as attempts,
           case when count(abandonments) > 0 then array_agg(abandonments order by place) end as abandonments,
           case when count(turn_key) > 0 then array_agg(turn_key order by place) end as keys,
           case when count(turn_key) > 0 then array_agg(turn_place order by place) end as places
    from leased
    where tid = any(array(select tid from matched))
      and not exists (select from matched where matched.id = leased.id and matched.key = leased.key)
    group by tid
  ),
  emptied as (
    delete from lease
    where ctid = any(array(select tid from matched except select tid from remaining))
  ),
  shrunk as (
    update lease
    set ids = remaining.ids, attempts = remaining.attempts, abandonments = remaining.abandonments,
        keys = remaining.keys, places = remaining.places,
        apart = case when grant_id is not null
                     then apart || array(select distinct turn_key from matched
                                         where matched.tid = remaining.tid and turn_key <> all(remaining.keys)) end
    from remaining
    where lease.ctid = remaining.tid
  )
  select array_agg(row(id, lane, coalesce(attempt, 1) + attempts_beyond_claim(outcome, uses), coalesce(abandonments, 0),
                       started_at, outcome, nullif(output, 'null'), left(message, 4000), detail,
                       case when outcome = 'release' then 0 else coalesce(seconds, 0) end, request_index, turn_key, turn_place,
                       not exists (select from remaining where remaining.tid = matched.tid and turn_key = any(remaining.keys)),
                       linked, more, worker, case when tid <> all(array(select tid from remaining)) then grant_id end,
                       apart)::settled_job order by id)
  into v_jobs
  from matched;
  return v_jobs;
end $$;

-- The request, and in it the rest of each run of which a job does not complete, with the outcome "withdraw". Called while
-- the leases are locked.
create or replace function with_rest_of_runs(
  p_ids uuid[], p_keys uuid[], p_outcomes jsonb, out ids uuid[], out keys uuid[], out outcomes jsonb
)
language plpgsql as $$
begin
  ids := p_ids;
  keys := p_keys;
  outcomes := p_outcomes;
  if not exists (select from lease where key = any(p_keys) and lease.keys is not null) then
    return;
  end if;
  with leased as materialized (
    select lease.ctid as tid, lease.key, entry.*
    from lease join lane using (lane)
    cross join lateral unnest(lease.ids, lease.keys, lease.places) as entry(id, turn_key, turn_place)
    where lease.key = any(p_keys) and lease.keys is not null and lane.kind = 'ordered'
  ),
  stopped as (
    select leased.tid, turn_key, min(turn_place) as turn_place
    from rows from (unnest(p_ids), unnest(p_keys), jsonb_to_recordset(p_outcomes) as (outcome text))
      as request(id, key, outcome)
    join leased using (id, key)
    where request.outcome <> 'complete'
    group by leased.tid, turn_key
  )
  select p_ids || array_agg(leased.id), p_keys || array_agg(leased.key),
         p_outcomes || coalesce(jsonb_agg(jsonb_build_object('outcome', 'withdraw')), '[]')
  into ids, keys, outcomes
  from stopped join leased using (tid, turn_key)
  where leased.turn_place > stopped.turn_place
    and not exists (select from unnest(p_ids, p_keys) as request(id, key)
                    where request.id = leased.id and request.key = leased.key);
end $$;

-- What an outcome adds to the number of the attempt that the claim began. fail_jobs gives one attempt back for a snooze, a
-- release and a withdrawal, so these add one for an attempt that counts nevertheless.
create or replace function attempts_beyond_claim(p_outcome text, p_uses int) returns int
language sql immutable
return case when p_outcome in ('snooze', 'release', 'withdraw', 'suspend') then coalesce(p_uses, 0) else coalesce(p_uses, 1) - 1 end;

-- Locks all leases of these keys. Whoever settles, extends or reaps one of them meanwhile waits here, or makes us wait.
-- An extend that we waited for may have replaced a lease by two new rows, which are not locked yet. So each look is
-- repeated, with a fresh snapshot, until it finds no row that is not locked.
--
-- Nobody deadlocks: all who wait lock in the order of the key and then of `lock_order`, which only rises, so a row that is
-- added later also comes later in the order. Under a stricter isolation level a lease that has changed since the
-- snapshot is a serialization failure here.
create or replace function lock_leases(p_keys uuid[]) returns void
language plpgsql as $$
declare
  v_key    uuid;
  v_locked tid[];
begin
  foreach v_key in array array(select distinct unnest(p_keys) order by 1) loop
    loop
      v_locked := array(select ctid from lease where key = v_key order by lock_order for update);
      exit when not exists (select from lease where key = v_key and ctid <> all(v_locked));
    end loop;
  end loop;
end $$;

-- Writes jobs to `done`: one packed row for each lane and 65-second bucket of ids, so that one job can be found by its id.
-- A settle comes from one worker, so its name splits no row.
-- p_failed: what did not complete in the same settle.
create or replace function complete_jobs(p_jobs settled_job[], p_failed settled_job[] default '{}') returns void
language plpgsql as $$
declare
  v_going uuid[];
  v_next  jsonb[];
begin
  if exists (select from unnest(p_jobs) where key is not null) then
    perform return_completed(p_jobs, array(select key from unnest(p_failed) where key is not null));
  end if;
  with packed as (
    select lane, worker, min(started_at) as started_at, array_agg(id order by id) as ids,
           case when max(attempt) > 1 then array_agg(attempt order by id) end as attempts
    from unnest(p_jobs)
    group by lane, worker, substring(uuid_send(id) for 4)
  ),
  written as (
    insert into done (hi_id, lo_id, started_at, finished_at, lane, ids, attempts, worker)
    select ids[cardinality(ids)], ids[1], started_at, now(), lane, ids, attempts, worker from packed
  ),
  kept as (
    insert into output (id, output)
    select id, output from unnest(p_jobs) where output is not null
  )
  insert into ledger (lane, leased, completed, processing_seconds)
  select lane, -count(*), count(*), date_part('epoch', now() - started_at) from unnest(p_jobs) group by lane, started_at;
  if exists (select from unnest(p_jobs) where linked is not null or more is not null) then
    select array_agg(id order by id), array_agg(more -> 'next' order by id) into v_going, v_next
    from unnest(p_jobs) where jsonb_typeof(more -> 'next') = 'object';
    perform continue_jobs(v_going, v_next);
    perform note_moves(array(select id from unnest(p_jobs)
                             where linked is not null and jsonb_typeof(more -> 'next') is distinct from 'object'),
                       'processing', 'completed');
  end if;
end $$;

-- Completes a job in the handler's own transaction, so that both are committed or neither. False: the lease is lost, and
-- the handler must roll back.
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
