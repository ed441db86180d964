-- choose: which jobs a claim takes. Locks them where they are and says where; the next statement moves them.

create or replace function choose_jobs(
  p_queue text, p_types text[], p_limit int, p_limits jsonb,
  out tids tid[], out ids uuid[], out is_probe boolean, out more boolean
)
language plpgsql as $$
#variable_conflict use_column
declare
  v_guarded     text[];   -- types with a limit or an open breaker
  v_priority    smallint;
  v_lanes       int[];    -- with work, the one with the oldest job first
  v_heads       bigint[]; -- the seq of each one's oldest job
  v_alone_lanes jsonb;    -- with work, and claimed alone
  v_alone       record;
  v_quota       record;
  v_taken       record;
begin
  tids := '{}';
  ids := '{}';
  is_probe := false;
  more := false;
  v_guarded := array(
    select asked.type from unnest(p_types) as asked(type)
    where p_limits ? asked.type
       or exists (select from breaker where breaker.type = asked.type and closed_at is null));

  loop
    v_priority := best_priority(p_queue, p_types, coalesce(v_priority - 1, 9));
    exit when v_priority is null;
    more := cardinality(ids) = p_limit;
    exit when more;
    select array_agg(chosen.lane order by oldest.seq) filter (where not chosen.is_alone),
           array_agg(oldest.seq order by oldest.seq) filter (where not chosen.is_alone),
           jsonb_agg(jsonb_build_object('type', chosen.type, 'solo', chosen.solo, 'lane', chosen.lane, 'head', oldest.seq))
             filter (where chosen.is_alone)
    into v_lanes, v_heads, v_alone_lanes
    from (
      select lane, type, solo, solo or type = any(v_guarded) as is_alone,
             coalesce(pg_sequence_last_value(cursor_sequence), 0) as low
      from lane
      where queue = p_queue and priority = v_priority and type = any(p_types)
        and type <> all(array(select name from pause where kind = 'type'))
      offset 0 -- a fence: the cursor has to be a value to seek by, not a function to filter by
    ) as chosen
    cross join lateral (
      select seq from ready where ready.lane = chosen.lane and seq >= chosen.low order by seq limit 1
    ) as oldest;
    more := v_alone_lanes is not null and ids <> '{}';
    exit when more;

    if v_alone_lanes is not null then
      -- Claimed alone, if it is the oldest: jobs of a limited type, up to its quota; and a job that was abandoned, so
      -- that if it ends its invocation once more it takes nobody along.
      for v_alone in
        select type, solo, array_agg(lane order by head) as lanes, array_agg(head order by head) as heads
        from jsonb_to_recordset(v_alone_lanes) as alone(type text, solo boolean, lane int, head bigint)
        group by type, solo
        order by min(head)
      loop
        exit when v_heads[1] < v_alone.heads[1];
        select * into v_quota from quota_of(v_alone.type, v_alone.type = any(v_guarded), p_limits);
        continue when v_quota.quota = 0; -- used up, or another claim is at it
        select * into v_taken
        from take_oldest(v_alone.lanes, v_alone.heads,
                         least(p_limit, v_quota.quota, case when v_alone.solo then 1 end));
        tids := v_taken.tids;
        ids := v_taken.ids;
        is_probe := v_quota.is_probe;
        more := ids <> '{}'; -- maybe; if not, another claim has it
        exit when more;
      end loop;
    end if;
    exit when more;
    continue when v_lanes is null;

    select * into v_taken from take_oldest(v_lanes, v_heads, p_limit - cardinality(ids));
    tids := tids || v_taken.tids;
    ids := ids || v_taken.ids;
    more := v_taken.more or v_alone_lanes is not null;
    -- What is left here comes before all of a lower priority; only where others hold it all does this one go on.
    exit when more and ids <> '{}';
  end loop;
end $$;

-- The highest priority up to the given one with a lane that has work, paused queues and types apart. Stops at the first
-- such lane: the lanes of lower priorities are not looked at.
create or replace function best_priority(p_queue text, p_types text[], p_most int) returns smallint
language plpgsql as $$
declare
  v_best smallint;
begin
  select levels.priority into v_best
  from (
    select distinct priority
    from lane
    where queue = p_queue and type = any(p_types) and priority <= p_most
    order by priority desc
    offset 0 -- a fence: in this order, and only as far as needed
  ) as levels
  where not exists (select from pause where kind = 'queue' and name = p_queue)
    and exists (
      select
      from (
        select lane, coalesce(pg_sequence_last_value(cursor_sequence), 0) as low
        from lane
        where queue = p_queue and priority = levels.priority and type = any(p_types)
          and type <> all(array(select name from pause where kind = 'type'))
        offset 0
      ) as chosen
      cross join lateral (
        select from ready where ready.lane = chosen.lane and seq >= chosen.low order by seq limit 1
      ) as oldest)
  limit 1;
  return v_best;
end $$;

-- Locks the oldest jobs of the given lanes, in the order of their seq. A locked row keeps its place, so its tid
-- still names it in the statement that removes it. None is locked only to see that there is more: another claim would
-- pass it over for a worse one.
create or replace function take_oldest(
  p_lanes int[], p_heads bigint[], p_limit int, out tids tid[], out ids uuid[], out more boolean
)
language plpgsql as $$
declare
  v_depth int := least(p_limit, 4 * p_limit / cardinality(p_lanes)) + 1;
  v_known bigint; -- up to here every lane was read; null: to its end
  v_last  bigint; -- of as many as wanted; null: there are fewer
  v_end   bigint; -- of all that was read
begin
  if cardinality(p_lanes) > 1 then
    -- Several types at once: first see without locks how far they go, so that no more than that is locked. A short
    -- look at each is enough unless one of them has most of the work.
    loop
      with ahead as materialized (
        select lanes.lane, ahead.seq
        from unnest(p_lanes, p_heads) as lanes(lane, head)
        cross join lateral (
          select seq from ready where ready.lane = lanes.lane and seq >= lanes.head order by seq limit v_depth
        ) as ahead
      )
      select (select seq from ahead order by seq offset p_limit - 1 limit 1),
             (select min(last) from (select max(seq) as last from ahead group by lane having count(*) = v_depth) as cut),
             (select max(seq) from ahead)
      into v_last, v_known, v_end;
      exit when v_depth > p_limit or v_known is null or v_last < v_known;
      v_depth := p_limit + 1;
    end loop;

    select array_agg(tid order by seq), array_agg(id order by seq) into tids, ids
    from (
      select ahead.tid, ahead.id, ahead.seq
      from unnest(p_lanes, p_heads) as lanes(lane, head)
      cross join lateral (
        select ctid as tid, id, seq
        from ready
        where ready.lane = lanes.lane and seq >= lanes.head and seq <= coalesce(v_last, v_end)
        order by seq
        for update skip locked
      ) as ahead
    ) as locked;
    more := v_last < v_end;
  end if;

  -- One lane; or others were faster: then whatever comes next in the lanes, the one with the oldest job first.
  if ids is null then
    select array_agg(tid order by place, seq), array_agg(id order by place, seq),
           more or exists (select from ready where lane = p_lanes[1] and seq > max(locked.seq))
    into tids, ids, more
    from (
      select ahead.tid, ahead.id, ahead.seq, lanes.place
      from unnest(p_lanes, p_heads) with ordinality as lanes(lane, head, place)
      cross join lateral (
        select ctid as tid, id, seq
        from ready
        where ready.lane = lanes.lane and seq >= lanes.head
        order by seq
        limit p_limit
        for update skip locked
      ) as ahead
      limit p_limit
    ) as locked;
  end if;
  tids := coalesce(tids, '{}');
  ids := coalesce(ids, '{}');
  more := coalesce(more, false);
end $$;
