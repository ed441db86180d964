-- snapshot: how long the oldest work has been waiting, read from the head of each lane without counting rows.

create or replace function snapshot(out oldest_due_seconds float8, out expired_lease_seconds float8)
language sql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- the first of a lane, not all of it sorted
as $$
  select
    coalesce(extract(epoch from now() - (
      select min(coalesce(
        case when oldest.attempt > 0 then (select max(failed_at) from failed_attempt where id = oldest.id) end,
        (select scheduled_at from job where id = oldest.id),
        time_of_id(oldest.id)))
      from (
        select lane, coalesce((select lows from cursors order by id desc limit 1)[lane], 0) as low from lane offset 0
      ) as lanes
      cross join lateral (
        select id, attempt from ready
        where ready.lane = lanes.lane and seq >= lanes.low
        order by seq limit 1
      ) as oldest
    )), 0),
    coalesce(extract(epoch from now() - (
      select deadline from lease where deadline < now() order by deadline limit 1
    )), 0)
$$;
