-- What the reaper does, each step bounded and harmless when it is run twice or by two at once.

-- A lease that ran out was held by a process that died. Its jobs come back after a backoff, or they are dead (abandoned)
-- when their attempts are used up. The limit counts jobs: the lease that reaches it is the last one.
--
-- Any of these jobs may be what ended its invocation, but most likely none or one is. So they run again in groups, which
-- takes little longer than all at once. A group that ends its invocation again is split into smaller ones, and the third
-- time each job runs alone. A job that has too few attempts left for a group runs alone at once, since its last attempt
-- must not depend on others. So a job that ends its invocation is alone in its fourth, and no other job dies with it.
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
  c_groups constant smallint[] := array[32, 6]; -- the largest group after the first time, after the second
  v_jobs   settled_job[];
begin
  with ran_out as materialized (
    select ctid as tid, deadline, cardinality(ids) as jobs
    from lease where deadline < now() order by deadline limit p_limit
    for update skip locked -- a settle that holds the lease is just in time
  ),
  removed as (
    delete from lease
    where ctid = any(array(
      select tid
      from (select tid, sum(jobs) over (order by deadline, tid) - jobs as jobs_before from ran_out) as in_order
      where jobs_before < p_limit))
    returning lane, started_at, ids, attempts, abandonments
  ),
  abandoned as materialized (
    select removed.lane, started_at, entry.id, coalesce(entry.attempt, 1) as attempt, coalesce(entry.abandonments, 0) + 1 as abandonments,
           case when kept.max_attempts - coalesce(entry.attempt, 1) >= 2
                then coalesce(c_groups[coalesce(entry.abandonments, 0) + 1], 1::smallint)
                else 1::smallint end as group_size
    from removed
    cross join lateral unnest(ids, attempts, abandonments) as entry(id, attempt, abandonments)
    cross join lateral (select max_attempts from job where job.id = entry.id) as kept
  ),
  isolated as materialized (
    select lane.lane, kind.group_size, coalesce(p_backoffs -> 'types' -> lane.type, p_backoffs -> 'default') as backoff, jobs,
           lane_of(lane.queue, lane.type, lane.priority, kind.group_size) as isolated_lane
    from (select lane, group_size, count(*)::int as jobs from abandoned group by lane, group_size) as kind
    join lane using (lane)
  ),
  moved as ( -- the books: from one lane to the other
    insert into ledger (lane, leased)
    select unnest(array[lane, isolated_lane]), unnest(array[-jobs, jobs]) from isolated
  )
  select array_agg(row(id, isolated_lane, attempt, abandonments, started_at,
                       'retry', null, 'the lease ran out', null, backoff_seconds(attempt, backoff))::settled_job)
  into v_jobs
  from abandoned join isolated using (lane, group_size);

  buried := cardinality(fail_jobs(coalesce(v_jobs, '{}'), 'abandoned'));
  returned := coalesce(cardinality(v_jobs), 0) - buried;
end $$;

-- Reads the wait from the list that core/policy/backoff.ts made. The last one is that of all later attempts.
create or replace function backoff_seconds(attempt int, backoff jsonb) returns float8
language sql volatile
return coalesce(coalesce(backoff -> 'waits' -> (attempt - 1), backoff -> 'waits' -> -1)::float8
                + random() * (backoff -> 'jitter')::float8, 0);

-- Pending jobs past their expiry: dead. Those whose producer chose a time are listed in `expiry`; all others
-- expire 30 days after their creation, which is in their id. A job that is being processed may finish; if it
-- comes back, the claim refuses it.
create or replace function reap_expired(p_limit int) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_oldest uuid := id_at(now() - interval '720 hours');
  v_ids    uuid[];
  v_buried int;
begin
  with due as materialized (
    select ctid as tid from expiry where expires_at <= now() order by expires_at limit p_limit for update skip locked
  ),
  removed as (
    delete from expiry where ctid = any(array(select tid from due)) returning id
  )
  select array_agg(id) into v_ids from removed;

  v_ids := v_ids
    || array(select old.id from (select id from ready where id < v_oldest order by id) as old
             cross join lateral (select from job where job.id = old.id and expires_at is null offset 0) as by_default
             limit p_limit)
    || array(select old.id from (select id from scheduled where id < v_oldest order by id) as old
             cross join lateral (select from job where job.id = old.id and expires_at is null offset 0) as by_default
             limit p_limit);

  with expired as materialized (
    select id from job where id = any(v_ids) and expiry_of(id, expires_at) <= now()
  ),
  from_ready as (
    delete from ready where id = any(array(select id from expired)) returning id, lane, attempt, abandonments
  ),
  from_scheduled as (
    delete from scheduled where id = any(array(select id from expired)) returning id, lane, attempt, abandonments
  ),
  gone as materialized (
    select *, 0 as scheduled from from_ready union all select *, 1 from from_scheduled
  ),
  closed as (
    insert into closed (id, status, reason, closed_at, lane, attempt, abandonments)
    select id, 'dead', 'expired', now(), lane, attempt, abandonments from gone
  ),
  booked as (
    insert into ledger (lane, pending, scheduled, dead, expired)
    select lane, -count(*), -sum(scheduled), count(*), count(*) from gone group by lane
  )
  select count(*) into v_buried from gone;
  return v_buried;
end $$;
