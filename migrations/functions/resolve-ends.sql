-- resolve ends: reads the events for a queue's waiting jobs, and releases or buries those whose wait is over. An event is a row of
-- `ready` in the queue's lane of kind `ends`; docs/decisions/flows.md says what it holds. Claims call it between the settlement
-- that came along and the fill of the batch, and the reaper calls it for queues that nobody claims from.
--
-- Whoever holds the queue's advisory lock is the resolver: nobody else counts, so each wait is released once. The lock is tried
-- and never waited for, and all rows are locked with `skip locked`. What cannot be locked is put back as a new event.

create or replace function ends_lock_of(p_queue text) returns bigint
language sql stable
return hashtextextended(format('sluice.ends.%s.%s', current_schema(), p_queue), 0);

-- What is left: `none`; `some` that this call has not read; `held` by others, who read them or have locked what they are about.
create or replace function resolve_ends(p_queue text, p_cursor_seqs bigint[]) returns text
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  c_rounds   constant int := 10; -- what a round appends is read by the next one
  v_some     record;
  v_has_more boolean;
  v_put_back end_event[];
  v_lanes    int[] := array(select lane from lane where queue = p_queue and kind = 'ends');
begin
  for round in 1 .. c_rounds loop
    if not has_events(v_lanes, p_cursor_seqs) then
      perform append_ends(v_put_back);
      return case when v_put_back is null then 'none' else 'held' end;
    elsif round = 1 and not pg_try_advisory_xact_lock(ends_lock_of(p_queue)) then
      return 'held';
    end if;
    v_some := resolve_some(p_queue, v_lanes, p_cursor_seqs);
    v_put_back := v_put_back || v_some.put_back;
    exit when v_some.has_locked; -- enough for one claim: it keeps others from the jobs that it has locked
  end loop;
  v_has_more := has_events(v_lanes, p_cursor_seqs);
  perform append_ends(v_put_back);
  return case when v_has_more then 'some' when v_put_back is null then 'none' else 'held' end;
end $$;

create or replace function has_events(p_lanes int[], p_cursor_seqs bigint[]) returns boolean
language plpgsql as $$
begin
  return exists (
    select
    from unnest(p_lanes) as line(lane)
    cross join lateral (
      select from ready where ready.lane = line.lane and seq >= coalesce(p_cursor_seqs[line.lane], 0) order by seq limit 1
    ) as event);
end $$;

-- Reads some events, and answers those that have to come again.
create or replace function resolve_some(
  p_queue text, p_lanes int[], p_cursor_seqs bigint[], out put_back end_event[], out has_locked boolean
)
language plpgsql as $$
declare
  c_rows     constant int := 100;
  v_tids     tid[];
  v_events   end_event[];
  v_timeouts bigint[];
  v_judged   record;
begin
  v_tids := array(
    select event.tid
    from unnest(p_lanes) as line(lane)
    cross join lateral (
      select ctid as tid from ready
      where ready.lane = line.lane and seq >= coalesce(p_cursor_seqs[line.lane], 0)
      order by seq limit c_rows for update skip locked
    ) as event);
  with removed as (
    delete from ready where ctid = any(v_tids) returning lane, key, returned, cardinality(returned) / 4 as n
  )
  select array_agg(row(lane, wait, number, case when high <> 0 then id_of_halves(high, low) end)::end_event)
           filter (where key is null),
         array_agg(key) filter (where key is not null)
  into v_events, v_timeouts
  from removed
  left join lateral unnest(returned[1 : n], returned[n + 1 : 2 * n], returned[2 * n + 1 : 3 * n], returned[3 * n + 1 : 4 * n])
    as entry(wait, number, high, low) on true;

  if exists (select from unnest(v_events) where number in (0, -1)) then
    v_judged := judge_edges(v_events);
    has_locked := v_judged.has_locked;
    put_back := v_judged.put_back || bury_waits(v_judged.dead_waits, v_judged.culprits, v_judged.lanes);
    v_events := v_events || v_judged.counts;
  end if;
  put_back := put_back || count_ends(v_events) || time_out_waits(v_timeouts, p_lanes[1]);
  if exists (select from unnest(v_events) where number = -2) then
    put_back := put_back || bring_back(p_queue, v_events);
  end if;
end $$;

-- Counts the edges that were cut, and releases the waits that have none left.
create or replace function count_ends(p_events end_event[]) returns end_event[]
language plpgsql as $$
declare
  v_put_back end_event[];
  v_released bigint[];
begin
  with counted as materialized (
    select wait, min(lane) as lane, sum(greatest(number, 0))::int as ended
    from unnest(p_events)
    where number > 0 or number = -1 -- a wait may have no edges at all
    group by wait
  ),
  locked as materialized (
    select wait, togo from blocked where wait = any(array(select wait from counted)) for update skip locked
  ),
  lowered as (
    update blocked set togo = blocked.togo - ended
    from counted join locked using (wait)
    where blocked.wait = counted.wait and ended > 0 and locked.togo > ended
  )
  select array_agg(wait order by wait) filter (where locked.wait is not null and locked.togo <= ended),
         array_agg(row(lane, wait, ended, null)::end_event)
           filter (where locked.wait is null and exists (select from blocked where blocked.wait = counted.wait))
  into v_released, v_put_back
  from counted left join locked using (wait);
  perform release_waits(v_released);
  return v_put_back;
end $$;

-- The time of these waits is over. Its row comes back if the wait is locked.
create or replace function time_out_waits(p_waits bigint[], p_lane int) returns end_event[]
language plpgsql as $$
declare
  v_locked bigint[];
begin
  if p_waits is not null then
    v_locked := array(select wait from blocked where wait = any(p_waits) for update skip locked);
    insert into ready (seq, id, lane, key, place)
    select nextval('ready_seq'), new_id(), p_lane, wait, 0
    from blocked where wait = any(p_waits) and wait <> all(v_locked);
    perform release_waits(v_locked);
  end if;
  return null;
end $$;

-- These jobs wait no more: each goes where it goes when it is ready. The caller has locked the rows.
create or replace function release_waits(p_waits bigint[]) returns void
language plpgsql as $$
declare
  v_ids      uuid[];
  v_timed    bigint[];
  v_earliest timestamptz; -- run_at
  v_now      timestamptz := clock_timestamp(); -- once: a job goes to one of two tables
begin
  if p_waits is null then
    return;
  end if;
  with removed as materialized (
    delete from blocked where wait = any(p_waits) returning *
  ),
  readied as (
    insert into ready (seq, id, lane, attempt, abandonments, key, place)
    select nextval('ready_seq'), id, lane, attempt, abandonments, key, place
    from (select * from removed where run_at is null or run_at <= v_now order by wait) as in_order
  ),
  postponed as (
    insert into scheduled (run_at, id, lane, attempt, abandonments, key, place)
    select run_at, id, lane, attempt, abandonments, key, place from removed where run_at > v_now
    returning run_at, lane
  ),
  booked as (
    insert into ledger (lane, blocked, pending) select abs(lane), -count(*), count(*) from removed group by abs(lane)
  ),
  booked_later as (
    insert into ledger (lane, scheduled) select abs(lane), count(*) from postponed group by abs(lane)
  )
  select array_agg(id), array_agg(wait) filter (where until is not null), (select min(run_at) from postponed)
  into v_ids, v_timed, v_earliest from removed;
  perform keep_reachable(v_earliest);
  perform note_moves(v_ids, 'blocked', 'pending');
  perform forget_waits(v_timed);
end $$;

-- Removes what is left of waits that are over: their time-outs and their edges. What others hold is left: a time-out or an edge
-- of a wait that is gone does nothing. Only resolvers remove edges so, because they commit soon: whoever ends a blocker waits for
-- them. A cancel may stay open, so it leaves the edges.
create or replace function forget_waits(p_waits bigint[]) returns void
language plpgsql as $$
begin
  if p_waits is not null then
    perform forget_time_outs(p_waits);
    delete from edge where ctid = any(array(select ctid from edge where wait = any(p_waits) for update skip locked));
  end if;
end $$;

create or replace function forget_time_outs(p_waits bigint[]) returns void
language plpgsql as $$
begin
  delete from scheduled where ctid = any(array(
    select ctid from scheduled where key = any(p_waits) and place = 0 for update skip locked));
end $$;

-- Blockers of these waits have ended badly. Jobs that wait for the ones that die here hear of it by events of their own.
create or replace function bury_waits(p_waits bigint[], p_culprits uuid[], p_lanes int[]) returns end_event[]
language plpgsql as $$
declare
  v_locked   bigint[];
  v_ids      uuid[];
  v_put_back end_event[];
begin
  if p_waits is null then
    return null;
  end if;
  v_locked := array(select wait from blocked where wait = any(p_waits) for update skip locked);
  with removed as (
    delete from blocked where wait = any(v_locked) returning id, wait, lane, attempt, abandonments
  ),
  culprit as (
    select distinct on (wait) wait, id as culprit from unnest(p_waits, p_culprits) as entry(wait, id) order by wait, id
  ),
  buried as (
    insert into closed (id, status, reason, closed_at, lane, attempt, abandonments, culprit)
    select id, 'dead', 'blocker', now(), abs(lane), attempt, abandonments, culprit from removed join culprit using (wait)
  ),
  booked as (
    insert into ledger (lane, blocked, dead) select abs(lane), -count(*), count(*) from removed group by abs(lane)
  )
  select array_agg(id) into v_ids from removed;
  perform note_moves(v_ids, 'blocked', 'dead');
  perform forget_waits(v_locked);
  select array_agg(row(lane, wait, -1, null)::end_event) into v_put_back
  from unnest(p_waits, p_lanes) as entry(wait, lane)
  where wait <> all(v_locked) and exists (select from blocked where blocked.wait = entry.wait);
  return v_put_back;
end $$;
