-- choose: which jobs a claim takes. Locks them where they are and says where; the next statement moves them.

create or replace function choose_jobs(
  p_queue text, p_types text[], p_limit int, p_limits jsonb, p_lows bigint[],
  out jobs picked_job[], out is_probe boolean, out more boolean
)
language plpgsql as $$
#variable_conflict use_column
declare
  v_priority    smallint;
  v_lanes       int[];     -- with work, the one with the oldest job first
  v_heads       bigint[];  -- the seq of each one's oldest job
  v_is_alone    boolean[]; -- it is claimed alone
  v_some_alone  boolean;
  v_alone       record;
  v_quota       record;
  v_taken       record;
begin
  jobs := '{}';
  is_probe := false;
  more := false;

  loop
    -- The best priority that has work; the lanes below its first are not looked at.
    select chosen.priority into v_priority
    from (
      select lane, priority, coalesce(p_lows[lane], 0) as low
      from lane
      where queue = p_queue and type = any(p_types) and priority < coalesce(v_priority, 10)
        and type <> all(array(select name from pause where kind = 'type'))
        and not exists (select from pause where kind = 'queue' and name = p_queue)
      order by priority desc
      offset 0 -- a fence: the cursor has to be a value to seek by
    ) as chosen
    cross join lateral (
      select from ready where ready.lane = chosen.lane and seq >= chosen.low order by seq limit 1
    ) as oldest
    limit 1;
    exit when not found;

    select array_agg(lane order by seq), array_agg(seq order by seq), array_agg(is_alone order by seq)
    into v_lanes, v_heads, v_is_alone
    from (
      select lane, coalesce(p_lows[lane], 0) as low,
             solo or coalesce(p_limits ? type, false)
               or type = any(array(select type from breaker where closed_at is null)) as is_alone
      from lane
      where queue = p_queue and priority = v_priority and type = any(p_types)
        and type <> all(array(select name from pause where kind = 'type'))
      offset 0
    ) as chosen
    cross join lateral (
      select seq from ready where ready.lane = chosen.lane and seq >= chosen.low order by seq limit 1
    ) as oldest;
    continue when v_lanes is null; -- others were faster

    v_some_alone := true = any(v_is_alone);
    more := cardinality(jobs) = p_limit or v_some_alone and jobs <> '{}';
    exit when more;

    if v_some_alone then
      -- Claimed alone, if it is the oldest: jobs of a limited type, up to its quota; and a job that was abandoned, so
      -- that if it ends its invocation once more it takes nobody along.
      for v_alone in
        select lane.type, lane.solo, array_agg(lane order by head) as lanes, array_agg(head order by head) as heads
        from unnest(v_lanes, v_heads, v_is_alone) as with_work(lane, head, is_alone) join lane using (lane)
        where is_alone
        group by lane.type, lane.solo
        order by min(head)
      loop
        exit when v_heads[array_position(v_is_alone, false)] < v_alone.heads[1];
        select * into v_quota from quota_of(v_alone.type, p_limits);
        continue when v_quota.quota = 0; -- used up, or another claim is at it
        select * into v_taken
        from take_oldest(v_alone.lanes, v_alone.heads,
                         least(p_limit, v_quota.quota, case when v_alone.solo then 1 end));
        jobs := v_taken.jobs;
        is_probe := v_quota.is_probe;
        more := jobs <> '{}'; -- maybe; if not, another claim has it
        exit when more;
      end loop;
      exit when more;
      select array_agg(lane order by head), array_agg(head order by head) into v_lanes, v_heads
      from unnest(v_lanes, v_heads, v_is_alone) as with_work(lane, head, is_alone)
      where not is_alone;
      continue when v_lanes is null;
    end if;

    select * into v_taken from take_oldest(v_lanes, v_heads, p_limit - cardinality(jobs));
    jobs := jobs || v_taken.jobs;
    more := v_taken.more or v_some_alone;
    -- What is left here comes before all of a lower priority; only where others hold it all does this one go on.
    exit when more and jobs <> '{}';
  end loop;
end $$;

-- Locks the oldest jobs of the given lanes, in the order of their seq. A locked row keeps its place, so its tid
-- still names it in the statement that removes it. None is locked only to see that there is more: another claim would
-- pass it over for a worse one.
create or replace function take_oldest(
  p_lanes int[], p_heads bigint[], p_limit int, out jobs picked_job[], out more boolean
)
language plpgsql as $$
declare
  c_all   constant bigint := 9223372036854775807;
  v_reach bigint;
  v_last  bigint := p_heads[1]; -- of as many as wanted
  v_seen  int := 1;
begin
  if cardinality(p_lanes) > 1 then
    -- Several types at once: first see without locks how far they go, so that no more than that is locked. Most often
    -- they lie close together.
    if p_limit > 1 then
      foreach v_reach in array array[p_heads[1] + 2 * p_limit, p_heads[1] + 16 * p_limit, c_all] loop
        select max(seq), count(*) into v_last, v_seen
        from (
          select ahead.seq
          from unnest(p_lanes, p_heads) as lanes(lane, head)
          cross join lateral (
            select seq
            from ready
            where ready.lane = lanes.lane and seq >= lanes.head and seq < v_reach
            order by seq
            limit p_limit
          ) as ahead
          order by ahead.seq
          limit p_limit
        ) as wanted;
        exit when v_seen = p_limit;
      end loop;
    end if;

    select array_agg(row(tid, id, lane, attempt, strikes)::picked_job order by seq),
           v_seen = p_limit and (
             v_last < p_heads[cardinality(p_heads)]
             or exists (
               select
               from unnest(p_lanes) as lanes(lane)
               cross join lateral (
                 select from ready where ready.lane = lanes.lane and seq > v_last order by seq limit 1
               ) as next))
    into jobs, more
    from (
      select ahead.*
      from unnest(p_lanes, p_heads) as lanes(lane, head)
      cross join lateral (
        select ctid as tid, seq, id, ready.lane, attempt, strikes
        from ready
        where ready.lane = lanes.lane and seq >= lanes.head and seq <= v_last
        order by seq
        for update skip locked
      ) as ahead
    ) as locked;
  end if;

  -- One lane; or others were faster: then whatever comes next in the lanes, the one with the oldest job first.
  if jobs is null then
    select array_agg(row(tid, id, lane, attempt, strikes)::picked_job order by place, seq),
           more or exists (select from ready where lane = p_lanes[1] and seq > max(locked.seq))
    into jobs, more
    from (
      select ahead.*, lanes.place
      from unnest(p_lanes, p_heads) with ordinality as lanes(lane, head, place)
      cross join lateral (
        select ctid as tid, seq, id, ready.lane, attempt, strikes
        from ready
        where ready.lane = lanes.lane and seq >= lanes.head
        order by seq
        limit p_limit
        for update skip locked
      ) as ahead
      limit p_limit
    ) as locked;
  end if;
  jobs := coalesce(jobs, '{}');
  more := coalesce(more, false);
end $$;
