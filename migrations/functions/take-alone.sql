-- take-alone: which jobs must not share a claim with others? There are two reasons, each with its own entry in lane_level:
--   needs_quota       the type has limits, or a breaker that is open or closing. A claim takes as many of its jobs as
--                     limits.sql allows.
--   group_sizes > 0   the lane holds isolated jobs. A claim takes one group, so that if one of its jobs ends the
--                     invocation once more, no job outside of the group is abandoned with it.

-- Takes jobs of a priority that has such lanes. Nothing has been taken before.
create or replace function take_alone_or_shared(p_batch claim_batch, p_level lane_level, p_queue text, p_limits jsonb)
returns claim_batch
language plpgsql as $$
declare
  v_shared lane_level := keep_shared_lanes(p_level);
begin
  p_batch := take_alone(p_batch, p_level, v_shared.oldest_seqs[1], p_queue, p_limits);
  if p_batch.taken is null and v_shared.lanes is not null then
    p_batch := take_oldest(p_batch, v_shared);
    if p_batch.taken is null and p_batch.buckets is not null and not p_batch.some_expired then
      -- All of the older jobs belong to other workers of the ring, so they hold nothing up.
      return take_alone(p_batch, p_level, null, p_queue, p_limits);
    end if;
    p_batch.has_more := p_batch.has_more or p_batch.taken is not null; -- the jobs that must be claimed alone are left
  end if;
  return p_batch;
end $$;

-- Takes jobs of one type for one of these reasons, if they are older than the jobs of the shared lanes. If it takes any,
-- has_more is true, because the next claim has to look.
create or replace function take_alone(
  p_batch claim_batch, p_level lane_level, p_oldest_shared bigint, p_queue text, p_limits jsonb
) returns claim_batch
language plpgsql as $$
declare
  v_group record;
  v_quota record;
  v_batch claim_batch;
begin
  for v_group in
    select type, group_size, min(seq) as oldest_seq,
           row(p_level.priority, array_agg(lane order by seq), array_agg(type order by seq), array_agg(seq order by seq),
               array_agg(needs_quota order by seq), array_agg(group_size order by seq), array_agg(kind order by seq))::lane_level
             as level
    from unnest(p_level.lanes, p_level.types, p_level.oldest_seqs, p_level.needs_quota, p_level.group_sizes, p_level.kinds)
      as entry(lane, type, seq, needs_quota, group_size, kind)
    where needs_quota or group_size > 0
    group by type, group_size
    order by min(seq)
  loop
    exit when p_oldest_shared < v_group.oldest_seq;
    continue when v_group.group_size > 0 and not may_take_isolated(p_queue);
    select * into v_quota from quota_of(v_group.type, p_limits);
    continue when v_quota.quota = 0;
    v_batch := p_batch;
    v_batch.jobs_left := least(p_batch.jobs_left, v_quota.quota, nullif(v_group.group_size, 0));
    if v_quota.is_trial then
      v_batch := take_tried(v_batch, v_group.level);
    else
      v_batch := take_oldest(v_batch, v_group.level);
    end if;
    if v_batch.taken is not null then
      v_batch.is_probe := v_quota.is_probe;
      v_batch.trial_type := case when v_quota.is_trial then v_group.type end;
      v_batch.jobs_left := 0; -- nothing else shares this claim
      v_batch.has_more := true;
      return v_batch;
    end if;
    p_batch.some_expired := v_batch.some_expired;
    p_batch.turns_returned := v_batch.turns_returned;
  end loop;
  return p_batch;
end $$;

-- A queue has one group of isolated jobs at a time. Whoever runs one claims nothing else meanwhile, so only one of a
-- queue's drains is kept busy that way. The advisory lock lasts until the claim has committed its lease, and the look
-- after it takes a fresh snapshot: the second of two claims is refused the lock, or it sees the lease of the first.
create or replace function may_take_isolated(p_queue text) returns boolean
language plpgsql as $$
begin
  return pg_try_advisory_xact_lock(hashtextextended(format('sluice.isolated.%s.%s', current_schema(), p_queue), 0))
    and not exists (
      select from lease join lane using (lane)
      where lease.deadline > clock_timestamp() and lane.queue = p_queue and lane.group_size > 0);
end $$;

-- For a breaker's probe or step: takes the job that probed last, then the jobs with the most attempts, because they are
-- the likeliest to succeed (breaker.sql). Each job is taken as a lane that ends with it.
create or replace function take_tried(p_batch claim_batch, p_level lane_level) returns claim_batch
language plpgsql as $$
declare
  -- Jobs to look at in each lane: about a millisecond. A job further back is found once it has been a probe.
  c_look_ahead constant int := 1000;
  -- Jobs to choose beyond those wanted, since other claims may have locked some: a few times what runs at once.
  c_spare      constant int := 20;
  v_probe      uuid := (select probe_id from breaker where type = p_level.types[1]);
  v_jobs       lane_level;
begin
  select p_level.priority, array_agg(lane order by place), array_agg(p_level.types[1]), array_agg(seq order by place),
         null, null, array_agg(p_level.kinds[array_position(p_level.lanes, lane)] order by place)
  into v_jobs
  from (
    select lane, seq, row_number() over (order by id is not distinct from v_probe desc, attempt desc, seq) as place
    from (
      select lane, seq, id, attempt from ready where id = v_probe and lane = any(p_level.lanes)
      union
      select ahead.*
      from unnest(p_level.lanes, p_level.oldest_seqs) as entry(lane, oldest_seq)
      cross join lateral (
        select lane, seq, id, attempt
        from ready where ready.lane = entry.lane and seq >= entry.oldest_seq order by seq limit c_look_ahead
      ) as ahead
    ) as waiting
    order by place
    limit p_batch.jobs_left + c_spare
  ) as tried;
  for n in 1 .. coalesce(cardinality(v_jobs.lanes), 0) loop
    exit when p_batch.jobs_left = 0;
    p_batch := take_lane(p_batch, v_jobs, n, v_jobs.oldest_seqs[n]);
  end loop;
  return p_batch;
end $$;
