-- The numbers of each type for the last hour: what its attempts did, how long its jobs waited and ran, and what holds it back.
-- They come from the history and the books, so no jobs are counted.

-- Histograms by type: how many jobs in each bucket of duration_bounds(), as { "waiting": { "4": 17 }, … }.
create or replace function recent_durations() returns table (type text, measures jsonb)
language sql stable
set search_path from current
as $$
  select type, jsonb_object_agg(measure, buckets)
  from (
    select type, measure, jsonb_object_agg(bucket, jobs) as buckets
    from (
      select type, measure, bucket, sum(jobs) as jobs
      from recent_duration join lane using (lane)
      where at >= date_bin('10 minutes', now(), '2000-01-01 00:00+00') - interval '50 minutes'
      group by type, measure, bucket
    ) as summed
    group by type, measure
  ) as by_measure
  group by type
$$;

-- How many jobs of each limited type count against its limits now: those under leases, and those that started within the
-- period of its rate. p_limits is as in claim(); null: no type has limits.
create or replace function limits_in_use(p_limits jsonb) returns table (type text, running bigint, started bigint)
language sql stable
set search_path from current
as $$
  select limited.type,
         (select coalesce(sum(cardinality(lease.ids)), 0) from lease join lane using (lane)
          where lease.key = any(newest.lease_keys) and lane.type = limited.type),
         (select coalesce(sum(entry.jobs), 0) from unnest(newest.started_at, newest.started) as entry(at, jobs)
          where entry.at > now() - make_interval(secs => (limited.limits ->> 'seconds')::float8))
  from jsonb_each(p_limits) as limited(type, limits)
  left join lateral (
    select lease_keys, started_at, started from limit_state where limit_state.type = limited.type order by id desc limit 1
  ) as newest on true
$$;

-- One row for each type that ever had a job, that is paused, or that is one of p_types. The hour has twelve buckets of five minutes;
-- the newest of them has not ended.
create or replace function type_numbers(p_types text[], p_limits jsonb)
returns table (type text, since timestamptz, enqueued bigint, completed bigint, failed bigint, retried bigint, died bigint,
               durations jsonb, bounds float8[], running bigint, started bigint, paused_since timestamptz,
               breaker_opened_at timestamptz, breaker_closed_at timestamptz, breaker_step smallint)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  with span as materialized (
    select date_bin('5 minutes', now(), '2000-01-01 00:00+00') - interval '55 minutes' as since
  ),
  unfolded as materialized (select * from unfolded_history(5)),
  hour as (
    select type, sum(enqueued) as enqueued, sum(completed) as completed, sum(failed) as failed, sum(retried) as retried,
           sum(died) as died
    from (
      select * from history where minutes = 5 and at >= (select since from span)
      union all
      select * from unfolded where at >= (select since from span)
    ) as entry
    join lane using (lane)
    group by type
  ),
  known as (
    select distinct type from lane where kind not in ('returns', 'ends')
    union
    select name from pause where kind = 'type'
    union
    select unnest(p_types)
  )
  select type, span.since, coalesce(enqueued, 0), coalesce(completed, 0), coalesce(failed, 0), coalesce(retried, 0),
         coalesce(died, 0), coalesce(measures, '{}'), duration_bounds(), running, started, pause.since,
         breaker.opened_at, breaker.closed_at, breaker.step
  from known
  cross join span
  left join hour using (type)
  left join recent_durations() using (type)
  left join limits_in_use(p_limits) using (type)
  left join pause on pause.kind = 'type' and pause.name = type
  left join breaker using (type)
  where type <> 'sluice.canary'
  order by type
$$;
