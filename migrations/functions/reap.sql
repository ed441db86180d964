-- What the reaper does. Each step is bounded, and harmless when it is run twice or by two at once.

-- A lease that ran out was held by a process that died. Its jobs come back after a backoff, or they are dead (abandoned)
-- when their attempts are used up, or cancelled if somebody asked for it. The limit counts jobs: the lease that reaches it is the last one.
--
-- Any of these jobs may be what ended its invocation, but most likely none or one is. So they go on as isolated jobs, in
-- groups of a size that isolated_group_size says. Of a run of one partition key only the first job was begun for sure: the
-- others go back to waiting as they were.
create or replace function reap_leases(
  p_limit    int,
  -- { default: backoff, types: { type: backoff } }, where a backoff is { waits: [seconds after attempt 1, 2, …], jitter }.
  -- Without it jobs come back at once.
  p_backoffs jsonb default null,
  out returned int, out buried int
)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_leases  tid[] := lock_expired_leases(p_limit);
  v_group   record;
  v_lane    int;
  v_backoff jsonb;
  v_closed  record;
begin
  returned := 0;
  buried := 0;
  -- The rows are locked, so what this reads is what is deleted below.
  for v_group in
    select lane.lane, lane.queue, lane.type, lane.priority, lane.kind, isolated.group_size, entry.is_first, count(*)::int as jobs,
           array_agg(entry.id) as ids, array_agg(isolated.attempt) as attempts,
           array_agg(isolated.abandonments) as abandonments, array_agg(lease.started_at) as started_at,
           array_agg(entry.key) as keys, array_agg(entry.place) as places, bool_or(lease.linked) as linked,
           array_agg(lease.worker) as workers
    from lease
    join lane using (lane)
    cross join lateral (
      select *, kind <> 'ordered' or place = min(place) over (partition by entry.key) as is_first
      from unnest(ids, attempts, abandonments, keys, places) as entry(id, attempt, abandonments, key, place)
    ) as entry
    cross join lateral (
      select coalesce(entry.attempt, 1) as attempt, coalesce(entry.abandonments, 0) + is_first::int as abandonments,
             case when is_first
                  then isolated_group_size(coalesce(entry.abandonments, 0) + 1, max_attempts - coalesce(entry.attempt, 1))
                  else lane.group_size end as group_size
      from job where job.id = entry.id
    ) as isolated
    where lease.ctid = any(v_leases)
    group by lane.lane, isolated.group_size, entry.is_first
  loop
    v_backoff := coalesce(p_backoffs -> 'types' -> v_group.type, p_backoffs -> 'default');
    -- Before the statements that move jobs: it inserts a lane that is missing, and may wait for another that does so.
    v_lane := lane_of(v_group.queue, v_group.type, v_group.priority, v_group.group_size, v_group.kind);
    insert into ledger (lane, leased) values (v_group.lane, -v_group.jobs), (v_lane, v_group.jobs);
    v_closed := fail_jobs(array(
      select row(id, v_lane, attempt, abandonments, started_at, case when v_group.is_first then 'retry' else 'withdraw' end,
                 null, 'the lease ran out', null, backoff_seconds(attempt, v_backoff), null, key, place, true,
                 v_group.linked, null, worker, null, null)::settled_job
      from unnest(v_group.ids, v_group.attempts, v_group.abandonments, v_group.started_at, v_group.keys, v_group.places,
                  v_group.workers)
        as job(id, attempt, abandonments, started_at, key, place, worker)), 'abandoned');
    buried := buried + cardinality(v_closed.dead);
    returned := returned + v_group.jobs - cardinality(v_closed.dead) - cardinality(v_closed.cancelled);
  end loop;
  perform return_grant(queue, grant_id, apart || keys)
  from lease join lane using (lane)
  where lease.ctid = any(v_leases) and grant_id is not null;
  delete from lease where ctid = any(v_leases);
end $$;

-- A settle that holds a lease's lock is just in time, so that lease is left out.
create or replace function lock_expired_leases(p_limit int) returns tid[]
language sql as $$
  select array_agg(tid)
  from (
    select tid, sum(jobs) over (order by deadline, tid) - jobs as jobs_before
    from (
      select ctid as tid, deadline, cardinality(ids) as jobs
      from lease where deadline < now() order by deadline limit p_limit
      for update skip locked
    ) as expired
  ) as in_order
  where jobs_before < p_limit
$$;

-- How many isolated jobs are claimed together at most. Groups take little longer than all jobs at once would. A group that
-- ends its invocation again is split into smaller ones, and the third time each job runs alone. A job that has too few
-- attempts left for a group runs alone at once, since its last attempt must not depend on others. So a job that ends its
-- invocation is alone in its fourth, and no other job dies with it.
create or replace function isolated_group_size(p_abandonments int, p_attempts_left int) returns smallint
language sql immutable
return case when p_attempts_left < 2 then 1
            when p_abandonments = 1 then 32
            when p_abandonments = 2 then 6
            else 1 end::smallint;

-- Reads the wait from the list that core/policy/backoff.ts made. The last one is that of all later attempts.
create or replace function backoff_seconds(attempt int, backoff jsonb) returns float8
language sql volatile
return coalesce(coalesce(backoff -> 'waits' -> (attempt - 1), backoff -> 'waits' -> -1)::float8
                + random() * (backoff -> 'jitter')::float8, 0);

-- Jobs that may have expired: those of `expiry` whose time has come, and some of the oldest. Locks the rows of `expiry`.
create or replace function ids_to_expire(p_limit int, p_kept int[], out ids uuid[], out listed tid[])
language plpgsql as $$
declare
  v_oldest uuid := id_at(now() - interval '720 hours');
begin
  select array_agg(due.id), array_agg(due.tid) into ids, listed
  from (select id, ctid as tid from expiry where expires_at <= now() order by expires_at limit p_limit for update skip locked) as due;
  ids := ids
    || array(select old.id from (select id from ready where id < v_oldest and lane <> all(p_kept) order by id) as old
             cross join lateral (select from job where job.id = old.id and expires_at is null offset 0) as by_default
             limit p_limit)
    || array(select old.id from (select id from scheduled where id < v_oldest order by id) as old
             cross join lateral (select from job where job.id = old.id and expires_at is null offset 0) as by_default
             limit p_limit)
    || array(select old.id from (select id from blocked where id < v_oldest order by id) as old
             cross join lateral (select from job where job.id = old.id and expires_at is null offset 0) as by_default
             limit p_limit);
end $$;

-- Buries pending and blocked jobs that have expired. Those whose producer chose a time are listed in `expiry`. All others expire 30
-- days after their creation, which is in their id. A job that is being processed may finish. If it comes back, the
-- next claim buries it. So does a job that waits behind others of its partition key, where dead jobs block: it has to block
-- the key when its turn comes.
--
-- It waits for nobody: a job whose row another transaction has locked is left for the next round, and so is its row of `expiry`. A
-- claim may hold it for a moment, and a caller's open transaction that has kept or merged a debounced job for long.
create or replace function reap_expired(p_limit int) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_kept   int[] := array(select -lane from lane where kind = 'ordered' and (key_policy_of(queue)).blocks); -- see above
  v_due    record := ids_to_expire(p_limit, v_kept);
  v_buried int;
  v_turns  held_turn[];
  v_pending uuid[];
  v_blocked uuid[];
  v_waits  bigint[];
begin
  if v_due.ids = '{}' then
    return 0;
  end if;
  with expired as materialized (
    select id, -lane = any(v_kept) as blocks from job where id = any(v_due.ids) and expiry_of(id, expires_at) <= now()
  ),
  from_ready as (
    delete from ready
    where ctid = any(array(select ctid from ready where id = any(array(select expired.id from expired)) and lane <> all(v_kept)
                           for update skip locked))
    returning id, lane, attempt, abandonments, key, place
  ),
  from_scheduled as (
    delete from scheduled
    where ctid = any(array(select ctid from scheduled where id = any(array(select expired.id from expired)) for update skip locked))
    returning id, lane, attempt, abandonments, key, place
  ),
  from_blocked as (
    delete from blocked
    where ctid = any(array(select ctid from blocked where id = any(array(select expired.id from expired)) for update skip locked))
    returning id, lane, attempt, abandonments, key, place, wait
  ),
  gone as materialized (
    select gone.*, blocks and place is not null as holds
    from (select *, 0 as scheduled, null::bigint as wait from from_ready
          union all select *, 1, null from from_scheduled
          union all select id, lane, attempt, abandonments, key, place, 0, wait from from_blocked) as gone
    join expired using (id)
  ),
  closed as (
    insert into closed (id, status, reason, closed_at, lane, attempt, abandonments, key, place)
    select id, 'dead', 'expired', now(), abs(lane), attempt, abandonments, case when holds then key end,
           case when holds then place end
    from gone
  ),
  booked as (
    insert into ledger (lane, pending, scheduled, blocked, dead, expired)
    select abs(lane), -count(*) filter (where wait is null), -sum(scheduled), -count(wait), count(*), count(*)
    from gone group by abs(lane)
  )
  select array_agg(row(lane, key, place)::held_turn) filter (where place is not null and not holds), count(*),
         array_agg(id) filter (where wait is null), array_agg(id) filter (where wait is not null), array_agg(wait)
  into v_turns, v_buried, v_pending, v_blocked, v_waits
  from gone;
  perform return_held_turns(v_turns);
  perform note_moves(v_pending, 'pending', 'dead');
  perform note_moves(v_blocked, 'blocked', 'dead');
  perform forget_time_outs(v_waits);
  perform forget_expiry(v_due.listed, v_kept);
  return v_buried;
end $$;

-- The rows of jobs that have expired and still wait are kept for the next round, unless a claim will bury them.
create or replace function forget_expiry(p_listed tid[], p_kept int[]) returns void
language plpgsql as $$
begin
  delete from expiry
  where ctid = any(p_listed) and not exists (
    select from job
    where job.id = expiry.id and expiry_of(job.id, job.expires_at) <= now()
      and (exists (select from ready where ready.id = job.id and lane <> all(p_kept))
           or exists (select from scheduled where scheduled.id = job.id)
           or exists (select from blocked where blocked.id = job.id)));
end $$;
