-- sweep: looks for jobs that wait although nothing is left that could release them. It should never find one. The reaper calls it
-- and reports what it has repaired (the alarm jobs_unreachable). It also removes edges that lead to nobody.

-- Walks over some waits in each call. A wait is right if its edges, with the events that are on their way, are as many as it
-- counts, and if none of its blockers has ended while no event is on its way. All of it is read in one snapshot, so a wait that is
-- just being worked on is not taken for a fault. p_ms: about how long it looks for waits, and for edges.
create or replace function sweep_blocked(p_limit int default 500, p_ms int default 20) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- rows in the order of an index, and no more than are wanted
set jit = off
as $$
declare
  v_last  bigint := last_wait(); -- before the walk: it has come to its end there, however many begin to wait meanwhile
  v_from  bigint;
  v_upto  bigint;
  v_waits bigint[];
begin
  insert into sweep (table_name, page) values ('blocked', 0) on conflict do nothing;
  select page into v_from from sweep where table_name = 'blocked' for update skip locked;
  if not found then
    return 0;
  end if;
  v_upto := end_of_walk('blocked', v_from, p_limit, p_ms);
  update sweep set page = case when v_upto < v_last then v_upto else 0 end where table_name = 'blocked'; -- it begins again
  v_waits := stuck_waits(v_from, v_upto);
  perform forget_edges(p_limit, p_ms);
  return wait_anew(v_waits);
end $$;

create or replace function last_wait() returns bigint
language sql volatile
return coalesce(pg_sequence_last_value('wait_number'), 0);

-- How far a walk over the rows of `blocked` or `edge` gets that have higher waits than p_from, of which it looks at p_limit. An edge
-- that a wait counts costs 60 µs, so it looks at no more waits when they have 2,000 together.
--
-- While the database is pinned the index keeps the entries of waits that are over, and a search for the next row steps over all of
-- them: 750,000 waits and twice as many edges took half a second. Waits are numbers in a row. So it looks at a range of them at a
-- time, twice as long after each that had no rows, until its time is up.
create or replace function end_of_walk(p_table text, p_from bigint, p_limit int, p_ms int) returns bigint
language plpgsql as $$
declare
  c_edges   constant int := 2000;
  c_numbers constant bigint := 500;
  v_end     timestamptz := clock_timestamp() + make_interval(secs => p_ms / 1000.0);
  v_last    bigint := last_wait();
  v_from    bigint := p_from;
  v_upto    bigint;
  v_numbers bigint := c_numbers;
  v_some    record;
  v_rows    int := 0;
  v_edges   bigint := 0;
begin
  loop
    v_upto := least(v_from + v_numbers, v_last);
    if p_table = 'blocked' then
      select count(*) as rows, coalesce(sum(togo), 0) as edges,
             max(wait) filter (where edges_before < c_edges - v_edges) as last, bool_or(edges_before >= c_edges - v_edges) as is_full
      into v_some
      from (
        select wait, togo, sum(togo) over (order by wait) - togo as edges_before
        from (select wait, togo from blocked where wait > v_from and wait <= v_upto order by wait limit p_limit - v_rows) as next
      ) as counted;
    else
      select count(*) as rows, 0::bigint as edges, max(wait) as last, false as is_full into v_some
      from (select wait from edge where wait > v_from and wait <= v_upto order by wait limit p_limit - v_rows) as next;
    end if;
    v_rows := v_rows + v_some.rows;
    v_edges := v_edges + v_some.edges;
    if v_some.is_full or v_rows >= p_limit then
      return coalesce(v_some.last, v_from);
    elsif v_upto >= v_last or clock_timestamp() >= v_end then
      return v_upto;
    end if;
    v_from := v_upto;
    v_numbers := case when v_some.rows = 0 then 2 * v_numbers else c_numbers end;
  end loop;
end $$;

-- A cancelled job leaves its edges, and a signal that never comes would cut none of them. A wait that is over never comes back, so
-- nobody counts them. Walks over some edges in each call, by the index edge_by_wait. The caller has locked a row of `sweep`, so only
-- one of these runs at a time. It waits for nobody, and whoever ends a blocker waits for it until the sweep commits.
create or replace function forget_edges(p_limit int, p_ms int) returns void
language plpgsql as $$
declare
  v_last bigint := last_wait(); -- before the walk
  v_from bigint := coalesce((select page from sweep where table_name = 'edge'), 0);
  v_upto bigint := end_of_walk('edge', v_from, p_limit, p_ms);
begin
  delete from edge where ctid = any(array(
    select ctid from edge
    where wait > v_from and wait <= v_upto and not exists (select from blocked where blocked.wait = edge.wait)
    for update skip locked));
  insert into sweep (table_name, page) values ('edge', case when v_upto < v_last then v_upto else 0 end) -- it begins again
  on conflict (table_name) do update set page = excluded.page;
end $$;

create or replace function stuck_waits(p_from bigint, p_upto bigint) returns bigint[]
language plpgsql stable as $$
begin
  return (
    with told as materialized ( -- waits that events are on their way for
      select distinct entry.wait
      from (
        select lane.lane, least(coalesce((select cursor_seqs[lane.lane] from cursors order by id desc limit 1), 0),
                                (select min(coalesce(cursor_seqs[lane.lane], 0)) from cursor_gap where cursor_seqs is not null)) as low
        from lane where kind = 'ends' offset 0
      ) as line
      cross join lateral (
        select key, returned from ready where ready.lane = line.lane and ready.seq >= line.low offset 0
      ) as ready
      cross join lateral (
        select ready.key as wait where ready.returned is null
        union all
        select unnest(returned[1 : cardinality(returned) / 4])
      ) as entry
    )
    select array_agg(wait)
    from blocked
    cross join lateral (
      select count(*) as edges, bool_or(has_ended(blocker)) as has_ended from edge where edge.wait = blocked.wait
    ) as known
    where wait > p_from and wait <= p_upto and wait not in (select told.wait from told)
      and (known.edges <> togo or known.has_ended));
end $$;

-- Whether a chain or signal has ended, in the caller's snapshot. Some of the outer tables are looked at first: most are open.
create or replace function has_ended(p_blocker uuid) returns boolean
language sql stable as $$
  select case when is_signal(p_blocker) then exists (select from signal where id = p_blocker)
              else not exists (select from ready where ready.id = last.id)
               and not exists (select from scheduled where scheduled.id = last.id)
               and not exists (select from blocked where blocked.id = last.id)
               and (exists (select from closed where closed.id = last.id)
                    or exists (select from done where hi_id >= last.id and hi_id <= end_of_bucket(last.id) and lo_id <= last.id
                               and last.id = any(ids))
                    or not exists (select from job where job.id = last.id)) end
  from (select coalesce((select id from chain_job where chain = p_blocker order by index desc limit 1), p_blocker) as id) as last
$$;

-- Gives waits a new number, counts their edges, and has all of them judged. Late events name the old number and do nothing. An edge
-- that somebody holds is just being cut: that wait is left to the next sweep.
create or replace function wait_anew(p_waits bigint[]) returns int
language plpgsql as $$
declare
  v_row   record;
  v_edges tid[];
  v_wait  bigint;
  v_anew  int := 0;
  v_earliest timestamptz;
begin
  for v_row in
    select blocked.ctid as tid, blocked.wait, ends_lane_of(lane.queue) as ends_lane
    from blocked join lane on lane.lane = abs(blocked.lane)
    where wait = any(p_waits)
    for update of blocked skip locked
  loop
    v_edges := array(select ctid from edge where wait = v_row.wait for update skip locked);
    continue when exists (select from edge where wait = v_row.wait and ctid <> all(v_edges));
    v_wait := nextval('wait_number');
    update edge set wait = v_wait where ctid = any(v_edges);
    with moved as (update scheduled set key = v_wait where key = v_row.wait and place = 0 returning run_at)
    select min(run_at) into v_earliest from moved;
    perform keep_reachable(v_earliest);
    update blocked set wait = v_wait, togo = cardinality(v_edges) where wait = v_row.wait;
    perform append_ends(array[row(v_row.ends_lane, v_wait, -1, null)::end_event]);
    v_anew := v_anew + 1;
  end loop;
  return v_anew;
end $$;

-- Reads the events of queues that nobody claims from.
create or replace function resolve_queues(p_limit int default 100) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_cursors bigint[] := (select cursor_seqs from cursors order by id desc limit 1);
  v_queue   text;
  v_queues  int := 0;
begin
  for v_queue in select distinct queue from lane where kind = 'ends' order by queue loop
    exit when v_queues = p_limit;
    if has_events(array(select lane from lane where queue = v_queue and kind = 'ends'), v_cursors) then
      perform resolve_ends(v_queue, v_cursors);
      v_queues := v_queues + 1;
    end if;
  end loop;
  return v_queues;
end $$;
