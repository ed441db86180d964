-- Groups of dead letters: by type, reason and fingerprint of the error. The triggers on `closed` keep the entries
-- (0026_closed_fingerprint.sql), so every way into `dead` and out of it counts, in the transaction that takes it.

-- Adds entries of `death` to the totals, after it has marked dead letters that have no fingerprint. An advisory lock lets one fold run at a time, so nobody else writes the totals. Entries
-- that are not committed yet stay for the next fold. A group without dead letters is forgotten, and so are hours after a day.
create or replace function fold_deaths(p_limit int) returns int
language plpgsql
security definer
set search_path from current
as $$
declare
  c_marked  constant int := 5000;
  v_entries death[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('sluice.fold_deaths.' || current_schema(), 0)) then
    return 0;
  end if;
  perform mark_dead_letters(c_marked);
  with removed as (
    delete from death where ctid = any(array(select ctid from death limit p_limit)) returning death
  )
  select array_agg(death) into v_entries from removed;
  insert into dead_hour as known (lane, reason, fingerprint, hour, died)
  select lane, reason, fingerprint, hour, sum(died) from unnest(v_entries) where died <> 0 group by 1, 2, 3, 4
  on conflict (lane, reason, fingerprint, hour) do update set died = known.died + excluded.died;
  insert into dead_group as known (lane, reason, fingerprint, dead, first_at, last_at)
  select lane, reason, fingerprint, sum(dead), min(first_at), max(last_at) from unnest(v_entries) group by 1, 2, 3
  on conflict (lane, reason, fingerprint) do update
  set dead = known.dead + excluded.dead, first_at = least(known.first_at, excluded.first_at),
      last_at = greatest(known.last_at, excluded.last_at);
  delete from dead_group
  where dead = 0 and (lane, reason, fingerprint) in (select lane, reason, fingerprint from unnest(v_entries));
  delete from dead_hour where hour < now() - interval '25 hours';
  return coalesce(cardinality(v_entries), 0);
end $$;

-- Gives dead letters from before the groups their fingerprint, oldest first. Who has locked one changes it, so it is left.
create or replace function mark_dead_letters(p_limit int) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_marked int;
begin
  with unmarked as materialized (
    select id, reason from closed
    where status = 'dead' and fingerprint is null order by id limit p_limit for update skip locked
  )
  update closed
  set fingerprint = case when unmarked.reason in ('expired', 'blocker') then 0
                         else error_fingerprint(last_error_of(closed.id)) end
  from unmarked where closed.id = unmarked.id;
  get diagnostics v_marked = row_count;
  return v_marked;
end $$;

create or replace function last_error_of(p_id uuid) returns text
language sql stable
begin atomic
  select message from failed_attempt where id = p_id order by failed_at desc limit 1;
end;

-- Totals and the entries that are not folded yet.
create or replace view dead_counts as
select lane, reason, fingerprint, dead, first_at, last_at from dead_group
union all
select lane, reason, fingerprint, dead, first_at, last_at from death;

-- How many dead letters match. Those without a fingerprint, and those that died after `p_until`, are counted one by one: there are
-- some only after an upgrade, or while `p_until` lies in the past.
create or replace function count_dead(
  p_type text, p_reason text, p_fingerprint bigint, p_queue text, p_until timestamptz default null
) returns bigint
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_custom_plan -- a filter that is null drops out of the plan
as $$
declare
  v_lanes int[] := lanes_matching(p_type, p_queue);
begin
  return (select coalesce(sum(dead), 0) from dead_counts
          where lane = any(v_lanes) and (p_reason is null or reason = p_reason)
            and (p_fingerprint is null or fingerprint = p_fingerprint))
       + (select count(*) from closed
          where status = 'dead' and fingerprint is null and p_fingerprint is null
            and lane = any(v_lanes) and (p_reason is null or reason = p_reason))
       - (select count(*) from closed
          where status = 'dead' and closed_at > p_until
            and lane = any(v_lanes) and (p_reason is null or reason = p_reason)
            and (p_fingerprint is null or fingerprint = p_fingerprint));
end $$;

-- The lanes of a type, a queue, or both. Null: any.
create or replace function lanes_matching(p_type text, p_queue text) returns int[]
language sql stable
begin atomic
  select array(select lane from lane
               where (p_type is null or type = p_type) and (p_queue is null or queue = p_queue));
end;

-- The largest groups first, and in each row how many groups and dead letters there are in all. `hours` has the deaths of the last
-- 24 hours, oldest first; the last one is the current hour. `newest_id` is the job that died last, and `error` its last error.
create or replace function dead_groups(p_type text, p_reason text, p_queue text, p_limit int)
returns table (
  type text, reason text, fingerprint bigint, dead bigint, first_at timestamptz, last_at timestamptz,
  groups bigint, total numeric, newest_id uuid, error text, pattern text, hours bigint[]
)
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set enable_sort = off -- entries are added up by hash: there may be a hundred thousand for fifty groups
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
  v_hour timestamptz := date_bin('1 hour', now(), '2000-01-01 00:00+00');
begin
  return query
    with entry as materialized ( -- read once: there may be many
      select lane, reason, fingerprint, hour, sum(dead) as dead, sum(died) as died, min(first_at) as first_at,
             max(last_at) as last_at
      from death group by 1, 2, 3, 4
    ),
    page as materialized (
      select lane.type, reason, fingerprint, sum(dead)::bigint as dead, min(first_at) as first_at, max(last_at) as last_at,
             array_agg(distinct lane) as lanes, count(*) over () as groups, sum(sum(dead)) over () as total
      from (select lane, reason, fingerprint, dead, first_at, last_at from dead_group
            union all select lane, reason, fingerprint, dead, first_at, last_at from entry) as counted
      join lane using (lane)
      where (p_type is null or lane.type = p_type) and (p_reason is null or reason = p_reason)
        and (p_queue is null or lane.queue = p_queue)
      group by lane.type, reason, fingerprint
      having sum(dead) > 0
      order by 4 desc, 6 desc nulls last, 1, 2, 3
      limit p_limit
    )
    select page.type, page.reason, page.fingerprint, page.dead, page.first_at, page.last_at, page.groups, page.total,
           newest.id, shown.error, error_pattern(shown.error),
           array(select coalesce(sum(died) filter (where at = slot), 0)::bigint
                 from generate_series(v_hour - interval '23 hours', v_hour, interval '1 hour') as slot
                 left join unnest(counted.hours, counted.deaths) as death(at, died) on at = slot
                 group by slot order by slot)
    from page
    left join lateral newest_dead(page.lanes, page.reason, page.fingerprint) as newest(id) on true
    cross join lateral (
      select case when page.fingerprint <> 0 then last_error_of(newest.id) end as error offset 0 -- a fence: once for each group
    ) as shown
    cross join lateral (
      select array_agg(hour) as hours, array_agg(died) as deaths
      from (select lane, reason, fingerprint, hour, died from dead_hour
            union all select lane, reason, fingerprint, hour, died from entry) as hourly
      where lane = any(page.lanes) and reason = page.reason and fingerprint = page.fingerprint
    ) as counted
    order by page.dead desc, page.last_at desc nulls last, page.type, page.reason, page.fingerprint;
end $$;

-- The dead letter of a group that died last: one step into the index for each lane.
create or replace function newest_dead(p_lanes int[], p_reason text, p_fingerprint bigint) returns uuid
language sql stable
begin atomic
  select last.id
  from unnest(p_lanes) as line(lane)
  cross join lateral (
    select id, closed_at from closed
    where status = 'dead' and closed.lane = line.lane and reason = p_reason and fingerprint = p_fingerprint
    order by closed_at desc, id desc limit 1
  ) as last
  order by last.closed_at desc, last.id desc limit 1;
end;
