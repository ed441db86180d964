-- choose: whose turn it is. Looks into lanes and locks nothing.

-- The lanes of the best priority below the given one that have work, the one with the oldest job first.
create or replace function next_level(
  p_queue text, p_types text[], p_below smallint, p_limits jsonb, p_lows bigint[], p_isolated boolean
) returns lane_level
language plpgsql as $$
declare
  v_level lane_level;
  v_first record;
begin
  -- The lanes below the first that has work are not looked into.
  select chosen.priority, chosen.lane, chosen.type, oldest.seq,
         chosen.group_size > 0 or coalesce(p_limits ? chosen.type, false)
           or exists (select from breaker where breaker.type = chosen.type and step is not null) as is_alone,
         exists (
           select from lane as other
           where queue = p_queue and other.priority = chosen.priority and other.type = any(p_types)
             and other.lane <> chosen.lane) as has_others
  into v_first
  from (
    select lane, type, priority, group_size, coalesce(p_lows[lane], 0) as low
    from lane
    where queue = p_queue and type = any(p_types) and priority < coalesce(p_below, 10)
      and (p_isolated or group_size = 0)
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
    v_level.oldest_seqs := array[v_first.seq];
    v_level.is_alone := array[v_first.is_alone];
    return v_level;
  end if;

  select v_first.priority, array_agg(lane order by seq), array_agg(type order by seq), array_agg(seq order by seq),
         array_agg(is_alone order by seq)
  into v_level
  from (
    select lane, type, coalesce(p_lows[lane], 0) as low,
           group_size > 0 or coalesce(p_limits ? type, false)
             or type = any(array(select type from breaker where step is not null)) as is_alone
    from lane
    where queue = p_queue and priority = v_first.priority and type = any(p_types)
      and (p_isolated or group_size = 0)
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
    from unnest(p_level.lanes, p_level.types, p_level.oldest_seqs, p_level.is_alone) with ordinality
      as entry(lane, type, head, is_alone, place)
    where not is_alone
    order by place
  ) as plain
$$;

-- Claimed alone, if it is the oldest: jobs of a limited type, up to its quota; and a group of isolated jobs, so that if one of
-- them ends its invocation once more it takes no others along.
create or replace function take_alone(p_batch claim_batch, p_level lane_level, p_limit int, p_limits jsonb)
returns claim_batch
language plpgsql as $$
declare
  v_plain_head bigint := p_level.oldest_seqs[array_position(p_level.is_alone, false)];
  v_group      record;
  v_quota      record;
  v_limit      int;
begin
  for v_group in
    select entry.type, lane.queue, lane.group_size,
           row(p_level.priority, array_agg(lane order by head), array_agg(entry.type order by head),
               array_agg(head order by head), array_agg(true))::lane_level as level,
           min(head) as head
    from unnest(p_level.lanes, p_level.types, p_level.oldest_seqs, p_level.is_alone) as entry(lane, type, head, is_alone)
    join lane using (lane)
    where is_alone
    group by entry.type, lane.queue, lane.group_size
    order by min(head)
  loop
    exit when v_plain_head < v_group.head;
    continue when v_group.group_size > 0 and not may_take_isolated(v_group.queue);
    select * into v_quota from quota_of(v_group.type, p_limits);
    continue when v_quota.quota = 0; -- used up, or another claim is at it
    v_limit := least(p_limit, v_quota.quota, nullif(v_group.group_size, 0));
    if v_quota.is_trial then
      p_batch := take_tried(p_batch, v_group.level, v_limit);
    else
      p_batch := take_oldest(p_batch, v_group.level, v_limit);
    end if;
    if p_batch.jobs > 0 then
      p_batch.is_probe := v_quota.is_probe;
      p_batch.trial_type := case when v_quota.is_trial then v_group.type end;
      p_batch.more := true; -- maybe
      exit;
    end if;
  end loop;
  return p_batch;
end $$;

-- One group of isolated jobs of a queue at a time: whoever has one claims nothing else meanwhile, and only one of a queue's
-- drains may be kept busy that way. The lock lasts until the claim has written its lease, and the look after it takes a
-- fresh snapshot: so of two claims the second is refused the lock or sees the lease of the first.
create or replace function may_take_isolated(p_queue text) returns boolean
language plpgsql as $$
begin
  return pg_try_advisory_xact_lock(hashtextextended(format('sluice.isolated.%s.%s', current_schema(), p_queue), 0))
    and not exists (
      select from lease join lane using (lane)
      where lease.deadline > clock_timestamp() and lane.queue = p_queue and lane.group_size > 0);
end $$;

-- For a breaker's probe or step: first the job that probed last, then what was tried most often. Only so far is looked:
-- what waits further back is found once it has been a probe. Each is taken as a lane of its own that ends with it.
create or replace function take_tried(p_batch claim_batch, p_level lane_level, p_limit int) returns claim_batch
language plpgsql as $$
declare
  c_look  constant int := 1000; -- jobs of a lane
  c_spare constant int := 20; -- others may have some of them at hand
  v_probe uuid := (select probe_id from breaker where type = p_level.types[1]);
  v_tried lane_level;
begin
  select p_level.priority, array_agg(lane order by place), array_agg(p_level.types[1]), array_agg(seq order by place),
         array_agg(true)
  into v_tried
  from (
    select lane, seq, row_number() over (order by id is not distinct from v_probe desc, attempt desc, seq) as place
    from (
      select lane, seq, id, attempt from ready where id = v_probe and lane = any(p_level.lanes)
      union
      select ahead.*
      from unnest(p_level.lanes, p_level.oldest_seqs) as lanes(lane, head)
      cross join lateral (
        select lane, seq, id, attempt
        from ready where ready.lane = lanes.lane and seq >= lanes.head order by seq limit c_look
      ) as ahead
    ) as waiting
    order by place
    limit p_limit + c_spare
  ) as tried;
  for n in 1 .. coalesce(cardinality(v_tried.lanes), 0) loop
    exit when p_batch.jobs = p_limit or p_batch.more;
    p_batch := take_lane(p_batch, v_tried, n, v_tried.oldest_seqs[n], 1);
  end loop;
  return p_batch;
end $$;
