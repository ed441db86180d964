-- snapshot: all that alarms, /metrics, /health and /v1/stats are made from, in one row. No row of a large table is
-- counted: sums come from the books, waiting times from the head of each lane, the rest from small tables. It takes one
-- step for each lane and window; what has a row for each lane and minute, or lane and bucket, is in shown-pairs.sql.

create or replace function snapshot(
  -- In minutes, at most 60. `minutes` has the sums of what lies between the starts of two windows, under the older one.
  p_windows int[] default '{}',
  out at timestamptz, out groups json, out minutes json, out rounds json, out running_since timestamptz,
  out open_breakers json, out live_workers int, out expired_lease_seconds float8, out oldest_transaction json,
  out tables json, out claim_ms float8, out enqueue_errors json, out impossible_states json
)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- the first of a lane, not all of it sorted
set jit = off -- where a table has no index the plan looks expensive, and compiling it would take longer than it does
as $$
  with unfolded as materialized ( -- the ledger is read once
    select lane, date_bin('1 minute', ledger.at, '2000-01-01 00:00+00') as minute, sum(enqueued) as enqueued, sum(pending) as pending,
           sum(scheduled) as scheduled, sum(leased) as leased, sum(completed) as completed, sum(failed) as failed, sum(dead) as dead,
           sum(discarded) as discarded, sum(cancelled) as cancelled, sum(expired) as expired
    from ledger
    group by 1, 2
  ),
  booked as ( -- as in the view `books`
    select * from tally where minute = '-infinity'
    union all
    select minute, lane, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired
    from unfolded
  ),
  newest_cursors as materialized (
    -- one that is ahead of the clock, which has stepped back, does not count
    select cursor_seqs, case when cursors.at <= clock_timestamp() then scheduled_cursor end as scheduled_cursor
    from cursors order by id desc limit 1
  ),
  starts as ( -- where the unclaimed part of each lane begins
    select lane, coalesce(low, 0) as low
    from lane
    -- Not `cursor_seqs[lane]`: that would decompress the whole array for each lane.
    left join unnest((select cursor_seqs from newest_cursors)) with ordinality as cursor(low, lane) using (lane)
    offset 0 -- a fence: the cursor has to be a value to seek by
  ),
  sightings as materialized ( -- when transaction ids were given out: a record that a watch round wrote bears one
    select coalesce(array_agg(age order by age), '{}') as ages, coalesce(array_agg(ended_at order by age), '{}') as times
    from (select age(xmin)::bigint, ended_at from round where kind = 'watch' order by id desc limit 1000) as latest
  ),
  waiting as (
    -- A job waits from its creation or its scheduled time on. One that came back by a retry, a snooze or a replay is
    -- younger than that: it became ready after the last watch round before the transaction that made it so.
    select starts.lane,
           greatest(case when coalesce(job.scheduled_at, time_of_id(oldest.id)) <= now() -- else the clock stepped back
                         then coalesce(job.scheduled_at, time_of_id(oldest.id)) end,
                    times[width_bucket(oldest.age, ages) + 1]) as since
    from starts
    cross join lateral (
      select id, age(ready.xmin)::bigint as age from ready
      where ready.lane = starts.lane and seq >= starts.low
      order by seq limit 1
    ) as oldest
    cross join lateral (select scheduled_at from job where job.id = oldest.id offset 0) as job
    cross join sightings
    union all
    -- due, and no claim has promoted it yet: among the longest due, which is where a stopped drain shows
    select lane, run_at
    from (
      select scheduled.lane, run_at from scheduled
      where run_at >= coalesce((select scheduled_cursor from newest_cursors), '-infinity') and run_at <= now()
      order by run_at limit 1000
    ) as due
  ),
  groups as (
    select queue, type, priority,
           coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending,
           coalesce(sum(scheduled), 0) as scheduled,
           coalesce(sum(leased), 0) as leased, coalesce(sum(completed), 0) as completed,
           coalesce(sum(failed), 0) as failed, coalesce(sum(dead), 0) as dead,
           coalesce(sum(discarded), 0) as discarded, coalesce(sum(cancelled), 0) as cancelled,
           coalesce(sum(expired), 0) as expired,
           extract(epoch from now() - min(since)) as "oldestDueSeconds"
    from lane
    left join booked using (lane)
    left join (select lane, min(since) as since from waiting group by lane) as oldest using (lane)
    group by queue, type, priority
    order by queue, type, priority
  ),
  window_of as ( -- of each minute of the last hour, the shortest window that it is in
    select date_trunc('minute', now()) - make_interval(mins => age) as minute,
           date_trunc('minute', now()) - make_interval(mins => min(window_minutes)) as window_start
    from generate_series(-1, 60) as age join unnest(p_windows) as window_minutes on window_minutes >= age
    group by age
  ),
  minutes as (
    select window_start as minute, queue, type, coalesce(sum(enqueued), 0) as enqueued,
           coalesce(sum(completed), 0) as completed, coalesce(sum(failed), 0) as failed,
           coalesce(sum(expired), 0) as expired, coalesce(sum(ready), 0) as ready
    from (
      select minute, lane, enqueued, completed, failed, expired, pending - scheduled as ready from tally
      where minute >= (select min(window_start) from window_of) -- null, and so none, without windows
      union all
      select minute, lane, enqueued, completed, failed, expired, coalesce(pending, 0) - coalesce(scheduled, 0)
      from unfolded
    ) as entries
    join window_of using (minute)
    join lane using (lane)
    group by window_start, queue, type
    having greatest(sum(enqueued), sum(completed), sum(failed), sum(expired), abs(sum(ready))) > 0
    order by window_start, queue, type
  ),
  latest as (
    select latest.kind, queue, started_at as "startedAt", ended_at as "endedAt", claimed, completed, failed, released,
           lost, reason, message, steps
    from unnest(array['drain', 'nudge', 'reap', 'watch']) as kinds(kind)
    cross join lateral (select * from round where round.kind = kinds.kind order by id desc limit 5) as latest
    order by latest.id desc
  ),
  holders as (
    -- The columns of other roles' sessions may be hidden, and a slot has no start: then the id it holds says its age.
    select 'session' as source, xact_start as since, greatest(age(backend_xmin), age(backend_xid)) as age
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and (backend_xmin is not null or backend_xid is not null)
      and backend_type is distinct from 'autovacuum worker' -- it holds nothing back
    union all
    select 'prepared', prepared, null from pg_prepared_xacts where database = current_database()
    union all
    select 'slot', null, greatest(age(xmin), age(catalog_xmin)) from pg_replication_slots
    union all
    select 'standby', null, age(backend_xmin) from pg_stat_replication
  ),
  oldest_transaction as (
    select extract(epoch from now() - coalesce(
             since, times[width_bucket(age::bigint, ages) + 1], times[cardinality(times)], now())) as seconds,
           source
    from holders cross join sightings
    where since is not null or age is not null
    order by seconds desc
    limit 1
  )
  select
    now(),
    (select coalesce(json_agg(groups), '[]') from groups),
    (select coalesce(json_agg(minutes), '[]') from minutes),
    (select coalesce(json_agg(latest), '[]') from latest),
    (select ended_at from round order by id limit 1),
    (select coalesce(json_agg(json_build_object('type', type, 'openedAt', opened_at)), '[]')
     from breaker where closed_at is null),
    (select count(distinct worker)::int from lease where deadline > now()),
    coalesce(extract(epoch from now() - (
      select deadline from lease where deadline < now() order by deadline limit 1)), 0),
    (select to_json(oldest_transaction) from oldest_transaction),
    (select json_agg(tables)
     from (
       select regexp_replace(relname, '^(job|done)_(\d{8}|default)$', '\1') as "table",
              sum(pg_stat_get_dead_tuples(oid)) as "deadRows",
              max(greatest(pg_stat_get_last_vacuum_time(oid), pg_stat_get_last_autovacuum_time(oid))) as "vacuumedAt"
       from pg_class
       where relnamespace = (select oid from pg_namespace where nspname = current_schema()) and relkind = 'r'
       group by 1
       order by 1
     ) as tables),
    (select percentile_cont(0.5) within group (order by claim_ms)
     from (
       (select claim_ms, ended_at from round where kind = 'drain' order by id desc limit 100)
       union all
       (select claim_ms, ended_at from round where kind = 'nudge' order by id desc limit 100)
     ) as claims
     where ended_at > now() - interval '5 minutes'),
    (select coalesce(json_agg(failing), '[]')
     from (
       select date_trunc('minute', enqueue_error.at) as minute, sum(errors) as errors
       from enqueue_error
       where enqueue_error.at >= date_trunc('minute', now()) - interval '1 hour'
       group by 1
       order by 1
     ) as failing),
    (select json_build_object('count', count(*), 'example',
              (select to_json(first)
               from (select kind, id, what from impossible_state order by seen_at, kind, id limit 1) as first))
     from impossible_state)
$$;

-- An isolate's count of enqueues that it answered with a 5xx or refused for depth since it last said so.
create or replace function record_enqueue_errors(p_errors int) returns void
language sql
security definer
set search_path from current
as $$
  insert into enqueue_error (errors) values (p_errors)
$$;
