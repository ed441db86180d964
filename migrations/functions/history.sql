-- History: what the charts of the last day show. The fold of the ledger writes it (books.sql). What is not folded yet is read
-- from the ledger itself, so every bucket is exact, also when no round has run for a while.

-- Of failed attempts: those whose jobs run again. One entry of the ledger has the attempts that ended together. Those of them
-- that killed their jobs are its dead jobs.
create or replace function retried_of(p_failed int, p_dead int) returns int
language sql immutable parallel safe
return greatest(p_failed - greatest(coalesce(p_dead, 0), 0), 0);

-- Deaths. Only a run that is stopped (stop-ahead.sql) takes jobs from pending to dead that have not expired: they had died before.
create or replace function died_of(p_dead int, p_pending int, p_expired int) returns int
language sql immutable parallel safe
return case when p_pending < 0 and p_expired is null then 0 else greatest(p_dead, 0) end;

-- Adds entries of one minute each to the buckets of every length.
create or replace function add_to_history(p_entries history[]) returns void
language sql as $$
  insert into history as known
  select step, date_bin(make_interval(mins => step), at, '2000-01-01 00:00+00'), lane, sum(enqueued), sum(due), sum(completed),
         sum(failed), sum(retried), sum(died)
  from unnest(p_entries) cross join unnest(array[1, 5, 30]) as step
  group by 1, 2, 3
  on conflict (minutes, at, lane) do update
  set enqueued = known.enqueued + excluded.enqueued, due = known.due + excluded.due,
      completed = known.completed + excluded.completed, failed = known.failed + excluded.failed,
      retried = known.retried + excluded.retried, died = known.died + excluded.died
$$;

-- Keeps 50 buckets of each length, two hours of durations, and spans that are not older than the oldest job.
create or replace function prune_history(p_limit int) returns void
language sql as $$
  delete from history
  where (minutes, at, lane) in (
    select old.minutes, old.at, old.lane
    from unnest(array[1, 5, 30]) as step
    cross join lateral (
      select minutes, at, lane from history
      where minutes = step and at < now() - step * interval '50 minutes'
      order by at limit p_limit
    ) as old);
  delete from recent_duration
  where (at, lane, measure, bucket) in (
    select at, lane, measure, bucket from recent_duration where at < now() - interval '2 hours' order by at limit p_limit);
  delete from lane_span
  where lane > 0 and until < (select time_of_id(id) from job order by id limit 1);
$$;

-- What is booked and not folded yet, by buckets of this length. Entries ahead of the clock belong to the newest bucket: it was
-- set back after they were written.
create or replace function unfolded_history(p_minutes int) returns setof history
language sql stable
set search_path from current
as $$
  select p_minutes, date_bin(make_interval(mins => p_minutes), least(at, now()), '2000-01-01 00:00+00'), lane,
         coalesce(sum(enqueued), 0), coalesce(sum(pending), 0) - coalesce(sum(scheduled), 0), coalesce(sum(completed), 0),
         coalesce(sum(failed), 0), coalesce(sum(retried_of(failed, dead)), 0), coalesce(sum(died_of(dead, pending, expired)), 0)
  from ledger
  group by 2, 3
$$;

-- The series of each queue, one value for each bucket, the oldest first. `due` is the number of due jobs at the end of the
-- bucket: that of now, less what has changed since. A bucket that had ended before anything was recorded has null. The queues
-- with the most jobs keep their names, and all others together are called "other".
create or replace function queue_series(p_minutes int, p_buckets int, p_queues int, p_since timestamptz) returns json
language sql stable
set search_path from current
as $$
  with unfolded as materialized (select * from unfolded_history(p_minutes)),
  newest as (select date_bin(make_interval(mins => p_minutes), now(), '2000-01-01 00:00+00') as at),
  total as ( -- of each queue, now
    select queue, sum(tally.enqueued) as enqueued,
           sum(coalesce(pending - scheduled, 0) + coalesce(unfolded.due, 0)) as due
    from lane
    left join tally on tally.lane = lane.lane and minute = '-infinity'
    left join (select lane, sum(due) as due from unfolded group by lane) as unfolded on unfolded.lane = lane.lane
    where kind not in ('returns', 'ends') and type <> 'sluice.canary'
    group by queue
  ),
  shown as (
    select queue, due, case when row_number() over (order by enqueued desc nulls last, queue) <= p_queues then queue else 'other' end as name
    from total
  ),
  entry as (
    select * from history where minutes = p_minutes
      and at >= (select at - (p_buckets - 1) * make_interval(mins => p_minutes) from newest)
    union all
    select * from unfolded
  ),
  summed as (
    select name, least(entry.at, newest.at) as at, sum(entry.enqueued) as enqueued, sum(entry.due) as due,
           sum(completed) as completed, sum(failed) as failed, sum(retried) as retried, sum(died) as died
    from entry join lane using (lane) join shown using (queue) cross join newest
    where type <> 'sluice.canary'
    group by 1, 2
  ),
  bucket as (
    select name, at, coalesce(enqueued, 0) as enqueued, coalesce(completed, 0) as completed, coalesce(failed, 0) as failed,
           coalesce(retried, 0) as retried, coalesce(died, 0) as died,
           now_due - coalesce(sum(due) over (partition by name order by at desc rows between unbounded preceding and 1 preceding), 0) as due
    from (select name, sum(due) as now_due from shown group by name) as named
    cross join (
      select at - n * make_interval(mins => p_minutes) as at from newest, generate_series(0, p_buckets - 1) as n
    ) as grid
    left join summed using (name, at)
  )
  select coalesce(json_agg(series order by queue), '[]')
  from (
    select name as queue, json_agg(case when is_known then enqueued end order by at) as enqueued,
           json_agg(case when is_known then completed end order by at) as completed,
           json_agg(case when is_known then failed end order by at) as failed,
           json_agg(case when is_known then retried end order by at) as retried,
           json_agg(case when is_known then died end order by at) as died,
           json_agg(case when is_known then due end order by at) as due
    from bucket cross join lateral (select at + make_interval(mins => p_minutes) > p_since as is_known) as known
    group by name
  ) as series
$$;

-- The times in which no watch round ended for more than six minutes: the database was left alone, or the crons stopped. The
-- newest 1,000 rounds are looked at.
create or replace function round_gaps(p_from timestamptz) returns json
language sql stable
set search_path from current
as $$
  select coalesce(json_agg(json_build_object('from', greatest(ended_at, p_from), 'to', next_at) order by ended_at), '[]')
  from (
    select ended_at, lead(ended_at, 1, now()) over (order by id) as next_at
    from (select id, ended_at from round where kind = 'watch' order by id desc limit 1000) as latest
  ) as pairs
  where next_at > p_from and next_at - ended_at > interval '6 minutes'
$$;

-- What charts mark: pauses and alarms, oldest first, at most 200. Of the audit, the newest 1,000 entries are looked at.
create or replace function chart_marks(p_from timestamptz) returns json
language sql stable
set search_path from current
as $$
  select coalesce(json_agg(json_build_object('at', at, 'kind', kind, 'about', about) order by at), '[]')
  from (
    select at, kind, about
    from (
      select at, action, target
      from (select at, action, target from audit order by id desc limit 1000) as latest
      where action in ('pause', 'resume')
      union all
      select at, event, concat_ws(' ', alarm, queue, job_type)
      from (select * from alarm_event order by id desc limit 1000) as latest
      where event in ('firing', 'resolved')
    ) as marks(at, kind, about)
    where at >= p_from
    order by at desc limit 200
  ) as marks
$$;

-- One row for a page with charts. p_minutes: how long a bucket is, 1, 5 or 30.
create or replace function read_history(
  p_minutes int, p_buckets int, p_queues int,
  out at timestamptz, out since timestamptz, out queues json, out gaps json, out marks json
)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select now(), recorded.since, queue_series(p_minutes, p_buckets, p_queues, recorded.since), round_gaps(shown.since),
         chart_marks(shown.since)
  from (select applied_at as since from migration where name = '0027_history.sql') as recorded
  cross join lateral (
    select greatest(recorded.since, date_bin(make_interval(mins => p_minutes), now(), '2000-01-01 00:00+00')
                                    - (p_buckets - 1) * make_interval(mins => p_minutes)) as since
  ) as shown
$$;
