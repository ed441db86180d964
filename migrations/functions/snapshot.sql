-- snapshot: what alarms, /metrics and /v1/stats are computed from, in one row. It counts no rows of a large table: sums
-- come from the books, waiting times from the oldest job of each lane, the rest from small tables. It takes one step for
-- each lane and window. What has a row for each lane and minute, or lane and bucket, is in shown-pairs.sql. All keys of
-- the JSON are in snake_case. The functions below run with the planner settings of snapshot(), which calls them.

-- Watch rounds date transaction ids. The row that a watch round inserts has the round's transaction id as its xmin, and
-- ended_at says when that was. `ages` has the ages of these ids, youngest first; `times` has their times.
create or replace function dated_ids(out ages bigint[], out times timestamptz[])
language sql stable
set search_path from current
as $$
  select coalesce(array_agg(age order by age), '{}'), coalesce(array_agg(ended_at order by age), '{}')
  from (select age(xmin)::bigint, ended_at from round where kind = 'watch' order by id desc limit 1000) as latest
$$;

-- The time of the last watch round before a transaction id was given out; null: the id is older than all of them.
-- width_bucket counts the dated ids that are younger than this one or as old, so the next one is the older neighbour.
create or replace function time_of_age(p_age bigint, p_ages bigint[], p_times timestamptz[]) returns timestamptz
language sql immutable
return p_times[width_bucket(p_age, p_ages) + 1];

-- Since when the oldest due jobs of each lane have been waiting.
--
-- Jobs with a key wait under the negative number of their lane. Dead rows lie between them, because keys are worked on at
-- different speeds, so there is no cursor to their oldest one. Three bounded looks stand for it:
--   the oldest turn that nobody has claimed, under the positive number, as for a plain lane. It waits since it was given out;
--   the oldest row that no dispatcher has read: a queue that nobody drains shows here;
--   the jobs that are next in some keys whose turn is out (waiting_behind_turns): a key whose backlog is too long shows here.
-- Jobs behind a retry are left out, and so are those behind a dead job, which show as a blocked key.
create or replace function waiting_since() returns table (lane int, since timestamptz)
language sql stable
set search_path from current
as $$
  with newest_cursors as materialized (
    -- If the clock has stepped back, a cursor may lie ahead of it. Then all rows are read.
    select cursor_seqs, case when at <= clock_timestamp() then scheduled_cursor end as scheduled_cursor
    from cursors order by id desc limit 1
  ),
  starts as ( -- where the unclaimed part of each lane begins
    select lane, coalesce(low, 0) as low
    from lane
    -- Not `cursor_seqs[lane]`: that would decompress the whole array for each lane.
    left join unnest((select cursor_seqs from newest_cursors)) with ordinality as cursor(low, lane) using (lane)
    where kind not in ('returns', 'ends')
    union all
    select -lane.lane, coalesce(given_up_to(lane.queue, lane.lane) + 1, 0)
    from lane
    where kind in ('ordered', 'fair')
    offset 0 -- a fence: without it the cursor is no value to seek by
  ),
  oldest as (
    select oldest.id, oldest.lane, oldest.age
    from starts
    cross join lateral (
      select id, ready.lane, age(ready.xmin)::bigint as age from ready
      where ready.lane = starts.lane and seq >= starts.low
      order by seq limit 1
    ) as oldest
    union all
    select behind.id, behind.lane, behind.age from waiting_behind_turns() as behind
  )
  -- A job waits from its creation or its scheduled time on. A job that came back by a retry, a snooze or a replay waits
  -- for less: it became ready after the last watch round before the transaction that inserted its row.
  select abs(oldest.lane),
         greatest(case when coalesce(job.scheduled_at, time_of_id(oldest.id)) <= now() -- else the clock stepped back
                       then coalesce(job.scheduled_at, time_of_id(oldest.id)) end,
                  time_of_age(oldest.age, ages, times))
  from oldest
  cross join lateral (select scheduled_at from job where job.id = oldest.id offset 0) as job
  cross join dated_ids()
  union all
  -- These are due, and no claim has promoted them yet. A stopped drain shows here, among those that are due the longest.
  select abs(lane), run_at
  from (
    select scheduled.lane, run_at from scheduled
    where run_at >= coalesce((select scheduled_cursor from newest_cursors), '-infinity') and run_at <= now()
    order by run_at limit 1000
  ) as due
$$;

-- The jobs that are next in keys whose turn is out: under a lease, the ten oldest places of each lane; or on its way back to
-- a dispatcher, ten keys of the row that has waited the longest. Jobs of a key are taken in the order of their places, so
-- each look passes the dead rows of one run at most.
create or replace function waiting_behind_turns() returns table (id uuid, lane int, age bigint)
language sql stable
set search_path from current
as $$
  with leased as (
    select entry.key, max(entry.place) as place,
           row_number() over (partition by lease.lane order by min(entry.place)) as number
    from lease cross join lateral unnest(keys, places) as entry(key, place)
    where deadline > now() and keys is not null
    group by lease.lane, entry.key
  ),
  turn as (
    select key, place from leased where number <= 10
    union all
    select came_back.key, came_back.place
    from lane as line
    cross join lateral (
      select returned, place as grant_id from ready
      where ready.lane = line.lane
        and seq >= coalesce((select cursor_seqs[line.lane] from cursors order by cursors.id desc limit 1), 0)
      order by seq limit 1
    ) as longest
    cross join lateral (
      select returned[n] as key, max(abs(returned[cardinality(returned) / 2 + n])) as place -- keys, and then their places
      from generate_series(1, cardinality(returned) / 2) as n
      where grant_id is null
      group by 1
      union all
      select behind.key, min(start)
      from turn_grant cross join lateral unnest(waited, starts) as behind(key, start) where id = grant_id
      group by 1
      order by 2
      limit 10
    ) as came_back
    where line.kind = 'returns'
  )
  select next.id, next.lane, next.age
  from turn
  cross join lateral (
    select ready.id, ready.lane, age(ready.xmin)::bigint as age from ready
    where ready.key = turn.key and ready.seq > turn.place and ready.lane < 0
    order by ready.seq limit 1
  ) as next
$$;

-- The books of each group, and the sums of the windows: both read the ledger, which is scanned once for the two.
create or replace function books_and_windows(p_windows int[], out groups json, out minutes json)
language sql stable
set search_path from current
as $$
  with unfolded as materialized (
    select lane, date_bin('1 minute', at, '2000-01-01 00:00+00') as minute, sum(enqueued) as enqueued, sum(pending) as pending,
           sum(scheduled) as scheduled, sum(leased) as leased, sum(completed) as completed, sum(failed) as failed, sum(dead) as dead,
           sum(discarded) as discarded, sum(cancelled) as cancelled, sum(expired) as expired, sum(blocked) as blocked
    from ledger
    group by 1, 2
  ),
  booked as ( -- as in the view `books`
    select * from tally where minute = '-infinity'
    union all
    select minute, lane, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired, blocked
    from unfolded
  ),
  groups as (
    select queue, type, priority,
           coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending,
           coalesce(sum(scheduled), 0) as scheduled,
           coalesce(sum(leased), 0) as leased, coalesce(sum(completed), 0) as completed,
           coalesce(sum(failed), 0) as failed, coalesce(sum(dead), 0) as dead,
           coalesce(sum(discarded), 0) as discarded, coalesce(sum(cancelled), 0) as cancelled,
           coalesce(sum(expired), 0) as expired, coalesce(sum(blocked), 0) as blocked,
           extract(epoch from now() - min(since)) as oldest_due_seconds
    from lane
    left join booked using (lane)
    left join (select lane, min(since) as since from waiting_since() group by lane) as oldest using (lane)
    where kind not in ('returns', 'ends') -- they hold no jobs
    group by queue, type, priority
    order by queue, type, priority
  ),
  window_of as ( -- the shortest window that has each minute of the last hour
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
      where minute >= (select min(window_start) from window_of) -- null without windows, so no row
      union all
      select minute, lane, enqueued, completed, failed, expired, coalesce(pending, 0) - coalesce(scheduled, 0)
      from unfolded
    ) as entries
    join window_of using (minute)
    join lane using (lane)
    group by window_start, queue, type
    having greatest(sum(enqueued), sum(completed), sum(failed), sum(expired), abs(sum(ready))) > 0
    order by window_start, queue, type
  )
  select (select coalesce(json_agg(groups), '[]') from groups), (select coalesce(json_agg(minutes), '[]') from minutes)
$$;

-- The last five rounds of each kind, newest first.
create or replace function recent_rounds() returns json
language sql stable
set search_path from current
as $$
  select coalesce(json_agg(recent), '[]')
  from (
    select latest.kind, queue, started_at, ended_at, claimed, completed, failed, released, lost, reason, message, steps
    from unnest(array['drain', 'nudge', 'reap', 'watch']) as kinds(kind)
    cross join lateral (select * from round where round.kind = kinds.kind order by id desc limit 5) as latest
    order by latest.id desc
  ) as recent
$$;

-- The transaction that keeps dead rows alive the longest. Columns of other roles' sessions may be hidden, and a slot has
-- no start. Then the watch rounds date the transaction id that it holds: it is older than the first round after it. The round
-- before may have been hours earlier, if the database was asleep.
create or replace function oldest_transaction() returns json
language sql stable
set search_path from current
as $$
  with holders as (
    select 'session' as source, xact_start as since, greatest(age(backend_xmin), age(backend_xid)) as age
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and (backend_xmin is not null or backend_xid is not null)
      and backend_type is distinct from 'autovacuum worker' -- it keeps no row alive
    union all
    select 'prepared', prepared, null from pg_prepared_xacts where database = current_database()
    union all
    select 'slot', null, greatest(age(xmin), age(catalog_xmin)) from pg_replication_slots
    union all
    select 'standby', null, age(backend_xmin) from pg_stat_replication
  )
  select json_build_object('seconds', seconds, 'source', source)
  from (
    select extract(epoch from now() - coalesce(since, times[width_bucket(age, ages)], now())) as seconds,
           source
    from holders cross join dated_ids()
    where since is not null or age is not null
    order by seconds desc
    limit 1
  ) as oldest
$$;

-- Dead rows and the last vacuum of each table. The partitions of a table count together.
create or replace function table_health() returns json
language sql stable
set search_path from current
as $$
  select json_agg(tables)
  from (
    select regexp_replace(relname, '^(job|done)_(\d{8}|default)$', '\1') as "table",
           sum(pg_stat_get_dead_tuples(oid)) as dead_rows,
           max(greatest(pg_stat_get_last_vacuum_time(oid), pg_stat_get_last_autovacuum_time(oid))) as vacuumed_at
    from pg_class
    where relnamespace = (select oid from pg_namespace where nspname = current_schema()) and relkind = 'r'
    group by 1
    order by 1
  ) as tables
$$;

-- The median time of a claim, as the drains of the last minutes measured it; null: there was none.
create or replace function recent_claim_ms() returns float8
language sql stable
set search_path from current
as $$
  select percentile_cont(0.5) within group (order by claim_ms)
  from (
    (select claim_ms, ended_at from round where kind = 'drain' order by id desc limit 100)
    union all
    (select claim_ms, ended_at from round where kind = 'nudge' order by id desc limit 100)
  ) as claims
  where ended_at > now() - interval '5 minutes'
$$;

create or replace function snapshot(
  -- In minutes, at most 60. `minutes` has the sums of what lies between the starts of two windows, under the older one.
  p_windows int[] default '{}',
  out at timestamptz, out groups json, out minutes json, out rounds json, out running_since timestamptz,
  out open_breakers json, out live_workers int, out expired_lease_seconds float8, out oldest_transaction json,
  out tables json, out claim_ms float8, out enqueue_errors json, out impossible_states json, out blocked_keys json,
  out idle_flows json
)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- the first row of a lane, without sorting all of them
set jit = off -- where a table has no index the plan looks expensive, and compiling it would take longer than running it
as $$
  select
    now(),
    books.groups,
    books.minutes,
    recent_rounds(),
    (select ended_at from round order by id limit 1),
    (select coalesce(json_agg(json_build_object('type', type, 'opened_at', opened_at)), '[]')
     from breaker where closed_at is null),
    (select count(distinct worker)::int
     from (select worker from lease where deadline > now() union all select worker_id from live_workers()) as live),
    coalesce(extract(epoch from now() - (
      select deadline from lease where deadline < now() order by deadline limit 1)), 0),
    oldest_transaction(),
    table_health(),
    recent_claim_ms(),
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
     from impossible_state),
    blocked_queues(),
    idle_flows()
  from books_and_windows(p_windows) as books
$$;
