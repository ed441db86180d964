-- Counts for each minute, and how long jobs took, by queue and type. There may be thousands of pairs of queue and type,
-- so only those with the most jobs keep their names. All others are called "other".
create or replace function shown_pairs(p_pairs int) returns table (lane int, queue text, type text)
language sql stable
set search_path from current
as $$
  select lane, case when place <= p_pairs then queue else 'other' end, case when place <= p_pairs then type else 'other' end
  from lane
  join (
    -- The canary always keeps its name, so that readers can leave it out.
    select queue, type, row_number() over (order by type = 'sluice.canary' desc, sum(enqueued) desc nulls last, queue, type)
             as place
    from lane left join tally on tally.lane = lane.lane and minute = '-infinity'
    where kind not in ('returns', 'ends')
    group by queue, type
  ) as pairs using (queue, type)
$$;

-- The last hour, with the current minute. Minutes without any change are left out.
create or replace function recent_minutes(p_pairs int)
returns table (minute timestamptz, queue text, type text, enqueued bigint, completed bigint, failed bigint,
               expired bigint, ready bigint)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  -- Materialized: the ledger has no index, and before PostgreSQL 18 reading it adds 10,000,000,000 to the cost of a plan
  -- while enable_seqscan is off. Beside that a join of each row with each row looks as cheap as any other.
  with unfolded as materialized (
    select date_bin('1 minute', at, '2000-01-01 00:00+00') as minute, lane, enqueued, completed, failed, expired,
           coalesce(pending, 0) - coalesce(scheduled, 0) as ready
    from ledger
    where at >= date_trunc('minute', now()) - interval '1 hour'
  )
  select minute, queue, type, coalesce(sum(enqueued), 0), coalesce(sum(completed), 0), coalesce(sum(failed), 0),
         coalesce(sum(expired), 0), coalesce(sum(ready), 0)
  from (
    select minute, lane, enqueued, completed, failed, expired, pending - scheduled as ready from tally
    where minute >= date_trunc('minute', now()) - interval '1 hour'
    union all
    select * from unfolded
  ) as entries
  join shown_pairs(p_pairs) using (lane)
  group by minute, queue, type
  having greatest(sum(enqueued), sum(completed), sum(failed), sum(expired), abs(sum(ready))) > 0
  order by minute, queue, type
$$;

-- Histograms, as of the last fold of the ledger. Empty buckets are left out.
create or replace function durations(p_pairs int, out buckets json, out bounds float8[])
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select
    (select coalesce(json_agg(summed), '[]')
     from (
       select queue, type, measure, bucket, sum(jobs) as jobs, sum(seconds) as seconds
       from duration join shown_pairs(p_pairs) using (lane)
       group by queue, type, measure, bucket
       order by queue, type, measure, bucket
     ) as summed),
    duration_bounds()
$$;
