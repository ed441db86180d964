-- take turns: the part of a claim that is about jobs with keys. The claim holds the queue's lock (dispatch.sql), unless it takes only
-- jobs that got their turns ahead (turns-ahead.sql).

-- Fills a batch from a queue that has keys. Where it has met expired jobs alone, their keys have got their turns back, and it
-- looks again.
create or replace function fill_batch_with_keys(
  p_batch claim_batch, p_types text[], p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean, p_run int, p_policy jsonb
) returns claim_batch
language plpgsql as $$
declare
  c_looks constant int := 10;
  c_tries constant int := 3;
  v_ahead bigint[];
  v_lock  record;
begin
  if exists (select from pause where kind = 'queue' and name = p_batch.queue) then
    return p_batch;
  end if;
  for try in 1 .. c_tries loop
    v_ahead := grants_ahead(p_batch);
    if v_ahead is not null then
      p_batch := take_without_lock(p_batch, v_ahead, p_types, p_limits, p_cursor_seqs, p_isolated, p_policy);
      if is_enough(p_batch) then
        p_batch.has_more := true;
        return p_batch;
      end if;
    end if;
    v_lock := lock_keys(p_batch, try < c_tries);
    exit when not v_lock.are_ahead;
  end loop;
  p_batch.has_keys := v_lock.is_locked;
  if not p_batch.has_keys then -- other claims of this queue take too long: only jobs without keys
    p_batch := fill_batch(p_batch, p_batch.queue, p_types, p_limits, p_cursor_seqs, p_isolated);
    p_batch.has_more := true;
    return p_batch;
  end if;
  for look in 1 .. c_looks loop
    p_batch.has_more := false;
    p_batch.turns_returned := false;
    p_batch := dispatch_and_fill(p_batch, p_types, p_limits, p_cursor_seqs, p_isolated, p_run, p_policy);
    exit when p_batch.taken is not null or not p_batch.turns_returned;
  end loop;
  p_batch.has_more := p_batch.has_more or p_batch.turns_returned;
  return p_batch;
end $$;

-- Turns that were given out before are taken first, if no new one can be better; then a dispatch finds what is missing.
-- Jobs that have just got their turn are taken straight from where they wait: those of a better priority than all that stands
-- in the lanes at first, the others when the lanes have no more. What the claim has no room for goes into its lane.
create or replace function dispatch_and_fill(
  p_batch claim_batch, p_types text[], p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean, p_run int, p_policy jsonb
) returns claim_batch
language plpgsql as $$
declare
  v_lanes      key_lanes := lanes_with_keys(p_batch.queue, p_types, p_limits);
  v_policy     record := apply_key_policy(p_batch.queue, p_policy);
  v_given      record;
  v_level      lane_level;
  v_wanted     int;
  v_dispatched record;
  v_granted    granted_jobs;
  v_best       smallint; -- priority in the lanes
  v_in_lanes   int := 0; -- how many jobs were taken from there
  v_are_left   boolean;
begin
  p_batch.policy := v_policy.policy;
  v_given := take_given_out(p_batch, v_lanes, v_policy.is_wider, p_types, p_limits, p_cursor_seqs, p_isolated);
  p_batch := v_given.batch;
  if v_given.is_enough then
    p_batch.has_more := true;
    return p_batch;
  end if;
  v_level := v_given.level;
  v_wanted := p_batch.jobs_left;
  p_batch.straight := v_lanes.straight;
  v_dispatched := dispatch(p_batch, v_given.cursor, v_policy.is_wider, v_lanes, p_types, p_run, p_cursor_seqs,
                           (v_level.priority >= v_lanes.priorities[1]) is not true);
  p_batch := v_dispatched.batch;
  v_granted := list_others(v_dispatched.granted, p_batch);
  if v_granted.heads is distinct from (v_dispatched.granted).heads then -- some were put into lanes
    v_level := next_level(p_batch.queue, p_types, null, p_limits, p_cursor_seqs, p_isolated, true);
  end if;
  v_best := v_level.priority;
  p_batch := take_granted(p_batch, v_granted, coalesce(v_best, -1::smallint), 9::smallint);
  if p_batch.jobs_left > 0 and v_best is not null then
    v_in_lanes := p_batch.jobs_left;
    p_batch := fill_batch(p_batch, p_batch.queue, p_types, p_limits, p_cursor_seqs, p_isolated);
    v_in_lanes := v_in_lanes - p_batch.jobs_left;
    p_batch := take_granted(p_batch, v_granted, -1::smallint, v_best);
  end if;
  -- has_more: payloads were too large for one answer, so jobs_left says nothing
  v_are_left := p_batch.has_more or v_wanted - p_batch.jobs_left - v_in_lanes < cardinality(v_granted.tids);
  if v_are_left then
    perform list_granted(v_granted.tids[1 : v_granted.heads]);
    p_batch.has_more := true;
  end if;
  if p_batch.granting && v_granted.lanes then
    perform store_grants(p_batch, v_granted, v_are_left);
  end if;
  p_batch.has_more := p_batch.has_more or v_dispatched.has_more or v_given.has_more;
  return p_batch;
end $$;

-- Takes turns that were given out before: those that stand in the lanes, then those ahead. `level`: what the lanes have after that.
-- `has_more`: the lanes have turns that this claim may not take. `is_enough`: there is nothing to dispatch for.
create or replace function take_given_out(
  p_batch claim_batch, p_lanes key_lanes, p_is_wider boolean, p_types text[], p_limits jsonb, p_cursor_seqs bigint[],
  p_isolated boolean,
  out batch claim_batch, out cursor key_cursor, out level lane_level, out has_more boolean, out is_enough boolean
)
language plpgsql as $$
declare
  v_ahead  bigint[];
  v_listed record;
begin
  is_enough := false;
  batch := p_batch;
  cursor := newest_key_cursor(batch.queue);
  batch.mark_seq := cursor.mark_seq;
  if p_is_wider then -- all waiting rows are read again
    cursor.lanes := '{}';
    cursor.seqs := '{}';
  end if;
  level := next_level(batch.queue, p_types, null, p_limits, p_cursor_seqs, p_isolated, true);
  has_more := false;
  if are_turns_of(level, p_lanes) and not p_is_wider then
    batch := take_oldest(batch, level);
    if batch.jobs_left = 0 then
      is_enough := true;
      return;
    elsif not batch.some_expired then
      -- The lanes of this priority have no more that this claim may take.
      level := next_level(batch.queue, p_types, level.priority, p_limits, p_cursor_seqs, p_isolated, true);
    end if;
    has_more := batch.has_more;
    batch.has_more := false;
    batch.some_expired := false;
  end if;
  if cursor.ahead <> '{}' then
    v_ahead := grants_ahead(batch);
    batch := take_ahead(batch, v_ahead, p_lanes, level);
    is_enough := is_enough(batch);
    if is_enough then
      return;
    end if;
    v_listed := list_ahead(cursor, v_ahead, p_lanes);
    cursor.ahead := v_listed.ahead;
    if v_listed.are_listed then
      level := next_level(batch.queue, p_types, null, p_limits, p_cursor_seqs, p_isolated, true);
    end if;
  end if;
end $$;

-- Whether turns stand in lanes that this claim can take before it gives out new ones: no new one can be of a better priority.
create or replace function are_turns_of(p_level lane_level, p_lanes key_lanes) returns boolean
language plpgsql as $$
begin
  return p_lanes.are_alike and p_level.priority = p_lanes.priorities[1] and 'ordered' = any(p_level.kinds)
    and not true = any(p_level.needs_quota) and 0 = all(p_level.group_sizes);
end $$;

-- Not those of types that are paused. The jobs of limited types and isolated jobs are not taken straight.
create or replace function lanes_with_keys(p_queue text, p_types text[], p_limits jsonb) returns key_lanes
language plpgsql as $$
declare
  v_lanes key_lanes;
begin
  select array_agg(lane) filter (where is_asked), array_agg(priority) filter (where is_asked),
         array_agg(kind = 'fair') filter (where is_asked),
         coalesce(array_agg(lane) filter (where is_straight), '{}'),
         coalesce(array_agg(lane) filter (where is_straight and kind = 'ordered'), '{}'), bool_and(is_asked),
         bool_and(kind = 'ordered') filter (where is_asked)
           and min(priority) filter (where is_asked) = max(priority) filter (where is_asked)
  into v_lanes
  from (
    select *, is_asked and group_size = 0 and (p_limits ? type) is not true
                and type <> all(array(select breaker.type from breaker where step is not null)) as is_straight
    from (
      select lane, type, kind, priority, group_size,
             type = any(p_types) and type <> all(array(select name from pause where pause.kind = 'type')) as is_asked
      from lane where queue = p_queue and kind in ('ordered', 'fair')
    ) as asked
    order by priority desc
  ) as line;
  return v_lanes;
end $$;

-- Puts into their lanes the jobs that this claim may not take straight, because of their lanes or because their keys are in the
-- buckets of other workers. Returns the others.
create or replace function list_others(p_granted granted_jobs, p_batch claim_batch) returns granted_jobs
language plpgsql as $$
declare
  v_others tid[];
  v_keys   bigint[];
begin
  if p_granted.lanes <@ p_batch.straight and p_batch.buckets is null then
    return p_granted;
  end if;
  select array_agg(tid order by number), array_agg(key) into v_others, v_keys
  from unnest(p_granted.tids, p_granted.keys, p_granted.lanes) with ordinality as granted(tid, key, lane, number)
  join lane using (lane)
  where number <= p_granted.heads
    and not (lane = any(p_batch.straight)
             and (kind = 'fair' or p_batch.buckets is null or abs(key % 360) = any(p_batch.buckets)));
  if v_others is null then
    return p_granted;
  end if;
  perform list_granted(v_others);
  select array_agg(tid order by number), array_agg(key order by number), array_agg(lane order by number),
         count(*) filter (where number <= p_granted.heads)
  into p_granted
  from unnest(p_granted.tids, p_granted.keys, p_granted.lanes) with ordinality as granted(tid, key, lane, number)
  where key <> all(v_keys);
  return p_granted;
end $$;

-- Takes jobs that have just got their turn, lane by lane and best priority first, if their priority is above p_above and not
-- above p_upto. A follower is taken only with the jobs before it, so a lane must not be taken twice.
create or replace function take_granted(
  p_batch claim_batch, p_granted granted_jobs, p_above smallint, p_upto smallint
) returns claim_batch
language plpgsql as $$
declare
  v_lane lane%rowtype;
  v_tids tid[];
  v_jobs locked_jobs;
begin
  for v_lane in
    select * from lane
    where lane = any(p_batch.straight) and lane = any(p_granted.lanes) and priority > p_above and priority <= p_upto
    order by priority desc, array_position(p_granted.lanes, lane)
  loop
    v_tids := p_granted.tids;
    if v_lane.lane <> any(p_granted.lanes) then
      v_tids := array(
        select tid from unnest(p_granted.tids, p_granted.lanes) with ordinality as granted(tid, lane, number)
        where lane = v_lane.lane order by number);
    end if;
    v_jobs := null;
    if v_lane.lane = all(p_granted.lanes) and cardinality((p_granted.locked).tids) <= p_batch.jobs_left then
      v_jobs := p_granted.locked;
    end if;
    loop
      exit when p_batch.jobs_left = 0;
      if v_jobs.tids is null then
        v_jobs := locked_rows(v_tids, p_batch.jobs_left);
      end if;
      v_jobs.grant_id := case when v_lane.lane = any(p_batch.granting) then p_batch.grant_base + v_lane.lane end;
      exit when v_jobs.ids is null;
      p_batch := take_lane(
        p_batch,
        row(v_lane.priority, array[v_lane.lane], array[v_lane.type], null, null, null, array[v_lane.kind])::lane_level,
        1, null, v_jobs);
      exit when not p_batch.some_expired;
      p_batch.some_expired := false;
      v_jobs := null;
      v_tids := array(select unnest(v_tids) intersect select unnest(p_granted.tids[1 : p_granted.heads])); -- no followers
    end loop;
  end loop;
  return p_batch;
end $$;

-- Jobs whose rows are locked, the first p_limit of p_tids that are still there.
create or replace function locked_rows(p_tids tid[], p_limit int) returns locked_jobs
language plpgsql as $$
declare
  v_jobs locked_jobs;
begin
  select array_agg(tid), array_agg(id order by id), array_agg(place order by id), max(seq),
         case when max(attempt) > 0 then array_agg((attempt + 1)::smallint order by id) end,
         case when max(abandonments) > 0 then array_agg(abandonments order by id) end,
         coalesce(array_agg(id) filter (where attempt > 0), '{}'),
         array_agg(key order by id), array_agg(place order by id)
  into v_jobs
  from (
    select ready.ctid as tid, id, seq, attempt, abandonments, key, coalesce(ready.place, seq) as place
    from ready
    where ctid = any(p_tids)
    order by case when cardinality(p_tids) > p_limit then array_position(p_tids, ready.ctid) end
    limit p_limit
  ) as locked;
  return v_jobs;
end $$;

-- The jobs with the lowest places. A run's jobs come in order, so none of them is taken without those before it.
create or replace function first_places(p_jobs locked_jobs, p_count int) returns locked_jobs
language plpgsql as $$
declare
  v_first locked_jobs;
begin
  if p_jobs.tids is not null then
    v_first := locked_rows(array(select ctid from ready where ctid = any(p_jobs.tids) order by coalesce(place, seq)), p_count);
    v_first.grant_id := p_jobs.grant_id;
  end if;
  return v_first;
end $$;

-- Locks the oldest turns of the level's nth lane. On the ring only those of the worker's own buckets, by an index that has
-- them in order, and then those that have waited so long that they are anybody's.
create or replace function lock_turns(p_batch claim_batch, p_level lane_level, n int, p_last bigint) returns locked_jobs
language plpgsql as $$
declare
  v_lane  int := p_level.lanes[n];
  v_first bigint := p_level.oldest_seqs[n];
  v_tids  tid[];
begin
  if p_batch.buckets is null or p_level.kinds[n] = 'fair' then
    v_tids := array(
      select ctid from ready
      where lane = v_lane and seq >= v_first and seq <= p_last
      order by seq limit p_batch.jobs_left for update skip locked);
  else
    -- In two steps: in one, Postgres would call the function for each row of the table.
    v_tids := own_turns(v_lane, v_first, p_last, p_batch.buckets, p_batch.jobs_left);
    v_tids := array(select ctid from ready where ctid = any(v_tids) for update skip locked);
    if cardinality(v_tids) < p_batch.jobs_left then
      v_tids := v_tids || array(
        select ctid from ready
        where lane = v_lane and seq >= v_first and seq <= least(p_last, p_batch.mark_seq) and ctid <> all(v_tids)
        order by seq limit p_batch.jobs_left - cardinality(v_tids) for update skip locked);
    end if;
  end if;
  return locked_rows(v_tids, p_batch.jobs_left);
end $$;

-- The oldest turns in some buckets. A few of each bucket are enough most often; otherwise it looks for more.
create or replace function own_turns(p_lane int, p_first bigint, p_last bigint, p_buckets int[], p_limit int) returns tid[]
language plpgsql as $$
declare
  v_each int;
  v_tids tid[];
begin
  foreach v_each in array array[2 * p_limit / greatest(cardinality(p_buckets), 1) + 1, p_limit] loop
    v_tids := array(
      select own.tid
      from unnest(p_buckets) as bucket
      cross join lateral (
        select ctid as tid, seq from ready
        where lane = p_lane and abs(key % 360) = bucket and place is not null and seq >= p_first and seq <= p_last
        order by seq limit v_each
      ) as own
      order by own.seq limit p_limit);
    exit when cardinality(v_tids) = p_limit;
  end loop;
  return v_tids;
end $$;

-- Closes those of the locked jobs that have expired and hold a turn, which are the first of their keys. Such a job keeps its
-- turn, so that it blocks its key, or the turn goes back.
create or replace function bury_expired_turns(p_batch claim_batch, p_level lane_level, n int, p_locked locked_jobs)
returns void
language plpgsql as $$
declare
  v_lane   int := p_level.lanes[n];
  v_blocks boolean := p_level.kinds[n] = 'ordered' and (p_batch.policy).blocks;
  v_turns  held_turn[];
  v_ids    uuid[];
begin
  with expired as materialized (
    select job.id, first.key, first.place
    from (
      select distinct on (key) key, place, id
      from unnest(p_locked.ids, p_locked.keys, p_locked.places) as entry(id, key, place) order by key, place
    ) as first
    join job on job.id = first.id
    where expiry_of(job.id, expires_at) <= p_batch.at
  ),
  removed as (
    delete from ready using expired where ready.id = expired.id
    returning ready.id, attempt, abandonments, expired.key, expired.place
  ),
  buried as (
    insert into closed (id, status, reason, closed_at, lane, attempt, abandonments, key, place)
    select id, 'dead', 'expired', now(), v_lane, attempt, abandonments,
           case when v_blocks then key end, case when v_blocks then place end
    from removed
  ),
  booked as (
    insert into ledger (lane, pending, dead, expired) select v_lane, -count(*), count(*), count(*) from removed
  )
  select array_agg(row(v_lane, key, place)::held_turn), array_agg(id) into v_turns, v_ids from removed;
  if not v_blocks then
    perform return_held_turns(v_turns);
  end if;
  perform note_moves(v_ids, 'pending', 'dead');
end $$;
