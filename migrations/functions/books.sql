-- The books: enqueued = completed + dead + discarded + cancelled + pending + leased + blocked, for each type, in every snapshot.

-- Adds entries of the ledger to a row for each minute and lane, to the lane's total, and to what the charts are drawn from
-- (history.sql). An advisory lock lets one fold run at a time. Entries that are not committed yet stay for the next fold, so
-- totals plus ledger are exact in every snapshot.
create or replace function fold_ledger(p_limit int) returns int
language plpgsql
security definer
set search_path from current
as $$
declare
  v_folded  tally[];
  v_history history[];
  v_timed   timed_jobs[];
  v_spans   lane_span[];
  v_rows    int;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('sluice.fold.' || current_schema(), 0)) then
    return 0;
  end if;
  with removed as (
    delete from ledger where ctid = any(array(select ctid from ledger limit p_limit))
    -- The clock may have stepped back. A minute must not lie ahead of it.
    returning *, date_bin('1 minute', least(at, clock_timestamp()), '2000-01-01 00:00+00') as minute
  ),
  timed as (
    select row(date_bin('10 minutes', minute, '2000-01-01 00:00+00'), lane, measure,
               width_bucket(seconds, duration_bounds()), sum(jobs), sum(jobs * seconds))::timed_jobs as entry
    from (
      select minute, lane, 'processing', completed, greatest(processing_seconds, 0)::float8
      from removed where processing_seconds is not null
      union all
      select minute, lane, 'waiting', 1, greatest(each_seconds, 0)::float8
      from removed cross join unnest(waiting_seconds) as each_seconds
    ) as durations(minute, lane, measure, jobs, seconds)
    group by date_bin('10 minutes', minute, '2000-01-01 00:00+00'), lane, measure, width_bucket(seconds, duration_bounds())
  ),
  summed as (
    select minute is null as is_total, count(*) as entries, min(at) filter (where enqueued > 0) as first_at,
           row(coalesce(minute, '-infinity'), lane, coalesce(sum(enqueued), 0), coalesce(sum(pending), 0),
               coalesce(sum(scheduled), 0), coalesce(sum(leased), 0), coalesce(sum(completed), 0), coalesce(sum(failed), 0), coalesce(sum(dead), 0),
               coalesce(sum(discarded), 0), coalesce(sum(cancelled), 0), coalesce(sum(expired), 0),
               coalesce(sum(blocked), 0))::tally as entry,
           row(1, minute, lane, coalesce(sum(enqueued), 0), coalesce(sum(pending), 0) - coalesce(sum(scheduled), 0),
               coalesce(sum(completed), 0), coalesce(sum(failed), 0), coalesce(sum(retried_of(failed, dead)), 0),
               coalesce(sum(died_of(dead, pending, expired)), 0))::history as charted
    from removed
    group by grouping sets ((minute, lane), (lane))
  )
  select array_agg(entry), array_agg(charted) filter (where not is_total),
         array_agg(row((entry).lane, first_at, clock_timestamp())::lane_span) filter (where is_total and first_at is not null),
         coalesce(sum(entries) filter (where is_total), 0), (select array_agg(entry) from timed)
  into v_folded, v_history, v_spans, v_rows, v_timed
  from summed;
  perform add_to_tally(v_folded);
  perform add_to_history(v_history);
  perform add_durations(v_timed);
  perform add_spans(v_spans);
  return v_rows;
end $$;

-- After the clock has stepped back, minutes that lie ahead of it are added to the current one. Otherwise they would
-- count as recent until the clock has passed them.
create or replace function bring_back_minutes(p_ahead timestamptz) returns int
language plpgsql as $$
declare
  v_minute timestamptz := date_bin('1 minute', clock_timestamp(), '2000-01-01 00:00+00');
  v_folded tally[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('sluice.fold.' || current_schema(), 0)) then
    return 0;
  end if;
  with ahead as (
    delete from tally where minute > p_ahead returning *
  ),
  summed as (
    select row(v_minute, lane, sum(enqueued), sum(pending), sum(scheduled), sum(leased), sum(completed), sum(failed),
               sum(dead), sum(discarded), sum(cancelled), sum(expired), sum(blocked))::tally as entry
    from ahead group by lane
  )
  select array_agg(entry) into v_folded from summed;
  perform add_to_tally(v_folded);
  return coalesce(cardinality(v_folded), 0);
end $$;

-- The upper bounds of the histogram buckets, in seconds. One more bucket holds everything longer.
create or replace function duration_bounds() returns float8[]
language sql immutable parallel safe
return array[0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400];

create or replace function add_to_tally(p_entries tally[]) returns void
language sql as $$
  insert into tally as known
  select * from unnest(p_entries)
  on conflict (minute, lane) do update
  set enqueued = known.enqueued + excluded.enqueued, pending = known.pending + excluded.pending,
      scheduled = known.scheduled + excluded.scheduled,
      leased = known.leased + excluded.leased, completed = known.completed + excluded.completed,
      failed = known.failed + excluded.failed, dead = known.dead + excluded.dead,
      discarded = known.discarded + excluded.discarded, cancelled = known.cancelled + excluded.cancelled,
      expired = known.expired + excluded.expired, blocked = known.blocked + excluded.blocked
$$;

-- Adds to the histogram of all times, and to that of the last hour.
create or replace function add_durations(p_entries timed_jobs[]) returns void
language sql as $$
  with lately as (
    insert into recent_duration as known (at, lane, measure, bucket, jobs)
    select at, lane, measure, bucket, jobs from unnest(p_entries)
    on conflict (at, lane, measure, bucket) do update set jobs = known.jobs + excluded.jobs
  )
  insert into duration as known (lane, measure, bucket, jobs, seconds)
  select lane, measure, bucket, sum(jobs), sum(seconds) from unnest(p_entries) group by lane, measure, bucket
  on conflict (lane, measure, bucket) do update
  set jobs = known.jobs + excluded.jobs, seconds = known.seconds + excluded.seconds
$$;

create or replace view books as
select queue, type, priority,
       coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending,
       coalesce(sum(scheduled), 0) as scheduled,
       coalesce(sum(leased), 0) as leased, coalesce(sum(completed), 0) as completed,
       coalesce(sum(failed), 0) as failed, coalesce(sum(dead), 0) as dead,
       coalesce(sum(discarded), 0) as discarded, coalesce(sum(cancelled), 0) as cancelled,
       coalesce(sum(expired), 0) as expired, coalesce(sum(blocked), 0) as blocked
from lane
left join (
  select lane, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired, blocked
  from tally where minute = '-infinity'
  union all
  select lane, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired, blocked
  from ledger
) as entries using (lane)
where kind not in ('returns', 'ends')
group by queue, type, priority;
