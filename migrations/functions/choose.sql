-- choose: which lanes are next? These functions look into lanes. They lock and write nothing.

-- The lanes of the best priority below p_below that have work, the lane with the oldest job first. Null: no priority
-- has work. Without lanes: another claim took the last jobs of this priority between the two looks.
create or replace function next_level(
  p_queue text, p_types text[], p_below smallint, p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean,
  p_has_keys boolean -- false: lanes of jobs with keys are left out
) returns lane_level
language plpgsql as $$
declare
  v_level lane_level;
  v_first record;
begin
  -- Goes from the best priority down and stops at the first lane that has work: to look into a lane that has work costs
  -- six times a look into an empty one.
  select chosen.priority, chosen.lane, chosen.type, chosen.kind, oldest.seq, chosen.group_size,
         coalesce(p_limits ? chosen.type, false)
           or exists (select from breaker where breaker.type = chosen.type and step is not null) as needs_quota,
         exists (
           select from lane as other
           where queue = p_queue and other.priority = chosen.priority and other.type = any(p_types)
             and other.lane <> chosen.lane) as has_others
  into v_first
  from (
    select lane, type, kind, priority, group_size, coalesce(p_cursor_seqs[lane], 0) as cursor_seq
    from lane
    where queue = p_queue and type = any(p_types) and priority < coalesce(p_below, 10)
      and (p_isolated or group_size = 0) and (p_has_keys or kind = 'plain')
      and type <> all(array(select name from pause where pause.kind = 'type'))
      and not exists (select from pause where pause.kind = 'queue' and name = p_queue)
    order by priority desc
    offset 0 -- keeps the planner from merging the two queries: the index is searched by cursor_seq as a value
  ) as chosen
  cross join lateral (
    select seq from ready where ready.lane = chosen.lane and seq >= chosen.cursor_seq order by seq limit 1
  ) as oldest
  limit 1;
  if not found then
    return null;
  end if;
  if v_first.has_others then
    return lanes_with_work(p_queue, p_types, v_first.priority, p_limits, p_cursor_seqs, p_isolated, p_has_keys);
  end if;
  v_level.priority := v_first.priority;
  v_level.lanes := array[v_first.lane];
  v_level.types := array[v_first.type];
  v_level.oldest_seqs := array[v_first.seq];
  v_level.needs_quota := array[v_first.needs_quota];
  v_level.group_sizes := array[v_first.group_size];
  v_level.kinds := array[v_first.kind];
  return v_level;
end $$;

create or replace function lanes_with_work(
  p_queue text, p_types text[], p_priority smallint, p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean,
  p_has_keys boolean
) returns lane_level
language plpgsql as $$
declare
  v_level lane_level;
begin
  select p_priority, array_agg(lane order by seq), array_agg(type order by seq), array_agg(seq order by seq),
         array_agg(needs_quota order by seq), array_agg(group_size order by seq), array_agg(kind order by seq)
  into v_level
  from (
    select lane, type, kind, group_size, coalesce(p_cursor_seqs[lane], 0) as cursor_seq,
           coalesce(p_limits ? type, false)
             or type = any(array(select type from breaker where step is not null)) as needs_quota
    from lane
    where queue = p_queue and priority = p_priority and type = any(p_types)
      and (p_isolated or group_size = 0) and (p_has_keys or kind = 'plain')
      and type <> all(array(select name from pause where pause.kind = 'type'))
    offset 0
  ) as chosen
  cross join lateral (
    select seq from ready where ready.lane = chosen.lane and seq >= chosen.cursor_seq order by seq limit 1
  ) as oldest;
  return v_level;
end $$;

-- The level without the lanes that must not share a claim with others (take-alone.sql).
create or replace function keep_shared_lanes(p_level lane_level) returns lane_level
language sql stable as $$
  select row(p_level.priority, array_agg(lane order by seq), array_agg(type order by seq), array_agg(seq order by seq),
             array_agg(needs_quota order by seq), array_agg(group_size order by seq), array_agg(kind order by seq))::lane_level
  from unnest(p_level.lanes, p_level.types, p_level.oldest_seqs, p_level.needs_quota, p_level.group_sizes, p_level.kinds)
    as entry(lane, type, seq, needs_quota, group_size, kind)
  where not needs_quota and group_size = 0
$$;
