-- claim: a batch of due jobs, best priority first and then oldest, under a lease. One call, one round trip.
--
-- What is claimed is deleted from `ready` and packed into one lease for each lane. Row locks that are skipped keep
-- two claimers apart. Pausing, and later limits and breakers, choose lanes: a lane that is not chosen costs nothing.

create or replace function claim(
  p_queue         text,
  p_types         text[], -- what the caller can run
  p_limit         int,
  p_lease_seconds float8,
  p_worker        text default null,
  p_max_bytes     bigint default 4194304 -- of payloads; the first job is claimed whatever its size
) returns table (
  id uuid, type text, payload jsonb, attempt smallint, max_attempts smallint, strikes smallint,
  lease_generation bigint, lease_expires_at timestamptz, priority smallint, created_at timestamptz,
  partition_key text, traceparent text, tags text[], errors jsonb, has_more boolean
)
language plpgsql
set search_path from current
set enable_seqscan = off -- whatever the statistics say, no queue is ever read from end to end,
set enable_bitmapscan = off -- nor a lane, to be sorted
set plan_cache_mode = force_generic_plan -- planning takes longer than the work
as $$
#variable_conflict use_column
declare
  v_priority   smallint;
  v_lanes      int[];    -- with work, the one with the oldest job first
  v_heads      bigint[]; -- the seq of each one's oldest job
  v_solo       int[];    -- lanes of abandoned jobs with work, likewise
  v_solo_heads bigint[];
  v_taken      record;
  v_more       boolean := false;
  v_tids       tid[] := '{}';
  v_ids        uuid[] := '{}';
  v_sorted     uuid[];
  v_generation bigint;
begin
  -- Cursors are moved by those who make them lag: about once in 400 claimed jobs.
  if random() < p_limit / 400.0 then
    perform advance_cursors(array(
      select lane from lane where queue = p_queue and type = any(p_types) order by random() limit 32));
  end if;
  if random() < p_limit / 20000.0 then
    perform fold_ledger(100000);
  end if;
  perform promote_due(greatest(2 * p_limit, 100));

  for v_priority in
    select distinct priority
    from lane
    where queue = p_queue and type = any(p_types)
      and not exists (select from pause where kind = 'queue' and name = p_queue)
    order by priority desc
  loop
    select array_agg(chosen.lane order by oldest.seq) filter (where not chosen.solo),
           array_agg(oldest.seq order by oldest.seq) filter (where not chosen.solo),
           array_agg(chosen.lane order by oldest.seq) filter (where chosen.solo),
           array_agg(oldest.seq order by oldest.seq) filter (where chosen.solo)
    into v_lanes, v_heads, v_solo, v_solo_heads
    from (
      select lane, solo, coalesce(pg_sequence_last_value(cursor_sequence), 0) as low
      from lane
      where queue = p_queue and priority = v_priority and type = any(p_types)
        and type <> all(array(select name from pause where kind = 'type'))
      offset 0 -- a fence: the cursor has to be a value to seek by, not a function to filter by
    ) as chosen
    cross join lateral (
      select seq from ready where ready.lane = chosen.lane and seq >= chosen.low order by seq limit 1
    ) as oldest;
    continue when v_lanes is null and v_solo is null;
    if cardinality(v_ids) = p_limit then
      v_more := true;
      exit;
    end if;

    -- A job that was abandoned runs alone: if it ends its invocation once more, it takes nobody along.
    if v_solo is not null then
      v_more := true;
      exit when v_ids <> '{}';
      if v_lanes is null or v_solo_heads[1] < v_heads[1] then
        select * into v_taken from take_oldest(v_solo[1:1], v_solo_heads[1:1], 1);
        v_tids := v_taken.tids;
        v_ids := v_taken.ids;
        exit when v_ids <> '{}'; -- else another claim has it, and this one goes on
      end if;
    end if;
    continue when v_lanes is null;

    select * into v_taken from take_oldest(v_lanes, v_heads, p_limit - cardinality(v_ids));
    v_tids := v_tids || v_taken.tids;
    v_ids := v_ids || v_taken.ids;
    v_more := v_more or v_taken.more;
    -- What is left here comes before all of a lower priority; only where others hold it all does this one go on.
    exit when v_more and v_ids <> '{}';
  end loop;
  if v_ids = '{}' then
    return;
  end if;

  v_sorted := array(select unnest(v_ids) order by 1);
  v_generation := nextval('lease_generation');
  return query
    with found as materialized (
      select picked.tid, picked.position, job.id, job.max_attempts,
             job.payload, job.partition_key, job.traceparent, job.tags,
             expiry_of(job.id, job.expires_at) <= now() as is_expired,
             sum(case when pg_column_compression(job.payload) is null then pg_column_size(job.payload)
                      else octet_length(job.payload::text) end) over (order by picked.position) as bytes
      from unnest(v_tids, v_ids) with ordinality as picked(tid, id, position)
      join job on job.id = picked.id
        and job.id = any(v_ids) and job.id >= v_sorted[1] and job.id <= v_sorted[cardinality(v_sorted)]
    ),
    kept as materialized (
      select * from found
      where position = 1 or position <= p_limit and bytes <= p_max_bytes
    ),
    removed as (
      delete from ready where ctid = any(array(select tid from kept)) returning id, lane, attempt, strikes
    ),
    claimed as materialized (
      select kept.*, removed.lane, removed.attempt, removed.strikes from kept join removed using (id)
    ),
    leased as (
      insert into lease (generation, deadline, started_at, lane, worker, ids, attempts, strikes)
      select v_generation, clock_timestamp() + make_interval(secs => p_lease_seconds), now(), lane, p_worker,
             array_agg(id order by id),
             case when max(attempt) > 0 then array_agg((attempt + 1)::smallint order by id) end,
             case when max(strikes) > 0 then array_agg(strikes order by id) end
      from claimed where not is_expired group by lane
      returning deadline
    ),
    buried as (
      insert into closed (id, status, reason, closed_at, lane, attempt, strikes)
      select id, 'dead', 'expired', now(), lane, attempt, strikes from claimed where is_expired
    ),
    booked as (
      insert into ledger (lane, pending, leased, dead)
      select lane, -count(*), nullif(count(*) filter (where not is_expired), 0),
             nullif(count(*) filter (where is_expired), 0)
      from claimed group by lane
    ),
    named as materialized ( -- once for each lane, not for each job
      select lane, type, priority from lane where lane = any(array(select distinct lane from claimed))
    )
    select claimed.id, named.type, claimed.payload, (claimed.attempt + 1)::smallint, claimed.max_attempts,
           claimed.strikes, v_generation, (select max(deadline) from leased), named.priority, time_of_id(claimed.id),
           claimed.partition_key, claimed.traceparent, claimed.tags,
           case when claimed.attempt > 0 then errors_of(claimed.id) else '[]' end,
           v_more or (select count(*) from kept) < cardinality(v_ids)
    from claimed join named using (lane)
    where not is_expired
    order by position;
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

-- What has become due moves from `scheduled` to the end of its lane, in bounded number, the longest due first.
create or replace function promote_due(p_limit int) returns void
language plpgsql as $$
declare
  v_low timestamptz := time_of_micros(coalesce(pg_sequence_last_value('scheduled_cursor'), 0));
  v_now timestamptz := clock_timestamp();
begin
  with due as materialized (
    select ctid as tid
    from scheduled
    where run_at >= v_low and run_at <= v_now
    order by run_at
    limit p_limit
    for update skip locked
  ),
  removed as (
    delete from scheduled where ctid = any(array(select tid from due)) returning run_at, id, lane, attempt, strikes
  )
  insert into ready (seq, id, lane, attempt, strikes)
  select nextval('ready_seq'), id, lane, attempt, strikes
  from (select * from removed order by run_at) as in_order;
end $$;
