-- choose: whose turn it is. Looks into lanes and locks nothing.

-- The lanes of the best priority below the given one that have work, the one with the oldest job first.
create or replace function next_level(p_queue text, p_types text[], p_below smallint, p_limits jsonb, p_lows bigint[])
returns lane_level
language plpgsql as $$
declare
  v_level lane_level;
  v_first record;
begin
  -- The lanes below the first that has work are not looked into.
  select chosen.priority, chosen.lane, chosen.type, oldest.seq,
         chosen.solo or coalesce(p_limits ? chosen.type, false)
           or exists (select from breaker where breaker.type = chosen.type and closed_at is null) as is_alone,
         exists (
           select from lane as other
           where queue = p_queue and other.priority = chosen.priority and other.type = any(p_types)
             and other.lane <> chosen.lane) as has_others
  into v_first
  from (
    select lane, type, priority, solo, coalesce(p_lows[lane], 0) as low
    from lane
    where queue = p_queue and type = any(p_types) and priority < coalesce(p_below, 10)
      and type <> all(array(select name from pause where kind = 'type'))
      and not exists (select from pause where kind = 'queue' and name = p_queue)
    order by priority desc
    offset 0 -- a fence: the cursor has to be a value to seek by
  ) as chosen
  cross join lateral (
    select seq from ready where ready.lane = chosen.lane and seq >= chosen.low order by seq limit 1
  ) as oldest
  limit 1;
  if not found then
    return null;
  end if;
  v_level.priority := v_first.priority;
  if not v_first.has_others then
    v_level.lanes := array[v_first.lane];
    v_level.types := array[v_first.type];
    v_level.heads := array[v_first.seq];
    v_level.is_alone := array[v_first.is_alone];
    return v_level;
  end if;

  select v_first.priority, array_agg(lane order by seq), array_agg(type order by seq), array_agg(seq order by seq),
         array_agg(is_alone order by seq)
  into v_level
  from (
    select lane, type, coalesce(p_lows[lane], 0) as low,
           solo or coalesce(p_limits ? type, false)
             or type = any(array(select type from breaker where closed_at is null)) as is_alone
    from lane
    where queue = p_queue and priority = v_first.priority and type = any(p_types)
      and type <> all(array(select name from pause where kind = 'type'))
    offset 0
  ) as chosen
  cross join lateral (
    select seq from ready where ready.lane = chosen.lane and seq >= chosen.low order by seq limit 1
  ) as oldest;
  return v_level;
end $$;

create or replace function without_alone(p_level lane_level) returns lane_level
language sql stable as $$
  select row(p_level.priority, array_agg(lane), array_agg(type), array_agg(head), array_agg(is_alone))::lane_level
  from (
    select lane, type, head, is_alone
    from unnest(p_level.lanes, p_level.types, p_level.heads, p_level.is_alone) with ordinality
      as entry(lane, type, head, is_alone, place)
    where not is_alone
    order by place
  ) as plain
$$;

-- Claimed alone, if it is the oldest: jobs of a limited type, up to its quota; and a job that was abandoned, so
-- that if it ends its invocation once more it takes nobody along.
create or replace function take_alone(p_batch claim_batch, p_level lane_level, p_limit int, p_limits jsonb)
returns claim_batch
language plpgsql as $$
declare
  v_plain_head bigint := p_level.heads[array_position(p_level.is_alone, false)];
  v_group      record;
  v_quota      record;
begin
  for v_group in
    select entry.type, lane.solo,
           row(p_level.priority, array_agg(lane order by head), array_agg(entry.type order by head),
               array_agg(head order by head), array_agg(true))::lane_level as level,
           min(head) as head
    from unnest(p_level.lanes, p_level.types, p_level.heads, p_level.is_alone) as entry(lane, type, head, is_alone)
    join lane using (lane)
    where is_alone
    group by entry.type, lane.solo
    order by min(head)
  loop
    exit when v_plain_head < v_group.head;
    select * into v_quota from quota_of(v_group.type, p_limits);
    continue when v_quota.quota = 0; -- used up, or another claim is at it
    p_batch := take_oldest(p_batch, v_group.level,
                           least(p_limit, v_quota.quota, case when v_group.solo then 1 end));
    if p_batch.jobs > 0 then
      p_batch.is_probe := v_quota.is_probe;
      p_batch.more := true; -- maybe
      exit;
    end if;
  end loop;
  return p_batch;
end $$;
