-- What happened minute by minute, and how long jobs took, by queue and type: for people and graphs. There may be thousands of
-- pairs of a queue and a type, so only those with the most jobs are shown by their names.

-- The names that a lane goes by: its own if it is among so many pairs with the most jobs, and else "other".
create or replace function shown_pairs(p_pairs int) returns table (lane int, queue text, type text)
language sql stable
set search_path from current
as $$
  select lane, case when place <= p_pairs then queue else 'other' end, case when place <= p_pairs then type else 'other' end
  from lane
  join (
    -- Sluice's own comes first: whoever leaves it out finds it by its name.
    select queue, type, row_number() over (order by type = 'sluice.canary' desc, sum(enqueued) desc nulls last, queue, type)
             as place
    from lane left join tally on tally.lane = lane.lane and minute = '-infinity'
    group by queue, type
  ) as pairs using (queue, type)
$$;

-- The last hour, the running minute included. A minute in which nothing happened is left out.
create or replace function recent_minutes(p_pairs int)
returns table (minute timestamptz, queue text, type text, enqueued bigint, completed bigint, failed bigint,
               expired bigint, ready bigint)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select minute, queue, type, coalesce(sum(enqueued), 0), coalesce(sum(completed), 0), coalesce(sum(failed), 0),
         coalesce(sum(expired), 0), coalesce(sum(ready), 0)
  from (
    select minute, lane, enqueued, completed, failed, expired, pending - scheduled as ready from tally
    where minute >= date_trunc('minute', now()) - interval '1 hour'
    union all
    select date_bin('1 minute', at, '2000-01-01 00:00+00'), lane, enqueued, completed, failed, expired,
           coalesce(pending, 0) - coalesce(scheduled, 0)
    from ledger
    where at >= date_trunc('minute', now()) - interval '1 hour'
  ) as entries
  join shown_pairs(p_pairs) using (lane)
  group by minute, queue, type
  having greatest(sum(enqueued), sum(completed), sum(failed), sum(expired), abs(sum(ready))) > 0
  order by minute, queue, type
$$;

-- As histograms, as of the last fold of the ledger; empty buckets are left out.
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
