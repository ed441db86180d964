-- What the reaper does, each step bounded and harmless when it is run twice or by two at once.

-- Leases that ran out: whoever held them died. The jobs come back after a backoff; or they are dead (abandoned) when
-- their attempts are used up. Bounded by jobs: the lease that reaches the limit is the last.
--
-- Any of them may be what ended their invocation, but most likely none or one is. So they go on in groups, which takes
-- little longer than without; whoever is in a group that ends again goes on in a smaller one, and the third time alone.
-- Alone at once goes a job that could not afford the group: its own last attempt must not depend on others. So a job
-- that ends its invocation is alone in its fourth, and takes no other to its death.
create or replace function reap_leases(
  p_limit    int,
  p_backoffs jsonb default null, -- { type: { base, max, jitter } } where a type's backoff is not the default
  out returned int, out buried int
)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  c_groups constant smallint[] := array[32, 6]; -- at the first strike, at the second
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
    select lane.lane, kind.group_size, p_backoffs -> lane.type as backoff, jobs,
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

-- min(base × 2^(attempt−1), max) + random(0, jitter), as core/policy/backoff.ts has it for a handler that failed.
create or replace function backoff_seconds(attempt int, backoff jsonb) returns float8
language sql volatile
return least(coalesce((backoff ->> 'base')::float8, 30) * 2 ^ (attempt - 1), coalesce((backoff ->> 'max')::float8, 3600))
       + random() * coalesce((backoff ->> 'jitter')::float8, 15);

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
