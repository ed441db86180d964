-- snapshot: how long the oldest work has been waiting, read from the head of each lane without counting rows.

create or replace function snapshot(out oldest_due_seconds float8, out expired_lease_seconds float8)
language sql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- the first of a lane, not all of it sorted
as $$
  select
    coalesce(extract(epoch from now() - (
      select min(coalesce(oldest_job.scheduled_at, time_of_id(oldest.id)))
      from (select lane, coalesce(pg_sequence_last_value(cursor_sequence), 0) as low from lane offset 0) as lanes
      cross join lateral (
        select id from ready
        where ready.lane = lanes.lane and seq >= lanes.low and attempt = 0
        order by seq limit 1
      ) as oldest
      cross join lateral (select scheduled_at from job where job.id = oldest.id limit 1) as oldest_job -- a look-up each
    )), 0),
    coalesce(extract(epoch from now() - (
      select deadline from lease where deadline < now() order by deadline limit 1
    )), 0)
$$;
