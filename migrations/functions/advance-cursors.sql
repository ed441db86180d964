-- advance_cursors: moves the cursors to the right, past rows that are gone. It never passes a row that is there or may
-- still appear.
--
-- A claim reads a lane from its cursor on, so a row that the cursor has passed is never found again. And a transaction
-- may take seq 100, stay open while seq 200 is committed and claimed, and commit only after that.
--
-- Invariant: in every snapshot, a row of `ready` that lies before its lane's cursor, or can come to lie there by the
-- commit of its owner, belongs to a transaction that has a gap in which the cursor stood before the row.
--
-- 1. Whoever inserts into `ready` holds its RowExclusiveLock from before nextval until its transaction ends.
-- 2. An advance first reads the last seq that was given out, then the open writers, which are the holders of that lock.
--    It keeps both with the cursors. So the owner of any seq up to there is among the open writers or has ended.
-- 3. For each of those open writers, the next advance finds one of two things. It has ended: then the fresh snapshot of
--    the next statement sees all that it wrote. Or it is still open: then the advance writes a gap for it, with the
--    place where the cursors stood.
-- 4. Cursors and gaps are rows of one transaction: a claim sees both or neither, and a rollback takes both back.
-- 5. When the owner of a gap has ended, its rows behind the cursors get a new seq: what is committed late gets a late
--    place.
--
-- The cursor of `scheduled` follows the same rules with times in place of seqs. But a clock can step back, so a later
-- writer may have an earlier time:
--
-- 6. Whoever writes to `scheduled` reads the newest cursors after that, so while it holds the lock. Where it has written
--    a run_at before their `at`, it writes a gap of its own beside the row (keep_reachable).
-- 7. Advance n keeps with its open writers how far the next advance may go: the earlier of its own `at` and the `at` of
--    the advance before. Whoever takes the lock after the open writers were read has seen one of these two, or a later
--    one. So what it writes before that time has a gap, and what it writes after that time is not passed.
-- 8. Advance n + 1 passes no further. A writer that it cannot see yet is among the open writers and gets a gap by 3, or
--    has one already.
-- 9. `at` is the clock and goes back with it, and the cursor goes back with `at`: later writers have nothing to mark.
-- 10. When the owner of a gap has ended, its rows behind the cursor become ready if they are due. The others are not
--     behind it any more, because the cursor is never ahead of the clock.
--
-- Rows under a negative lane are not read by cursors: dispatch.sql has its own positions for them.
--
-- This needs statements that each take a new snapshot, so READ COMMITTED. It also needs a transaction that has written
-- nothing yet: its own rows would count as there and then be rolled back. A writer under another isolation level may
-- read cursors that are too old for 7. That takes a step of the clock as well, and check_reach finds it.

-- Fails where a role or a database has another isolation level as its default: what relies on fresh snapshots would
-- be wrong without a word. The driver answers a serialization failure by a second try that names the level.
create or replace function need_read_committed() returns void
language plpgsql as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'serialization_failure', message = 'this needs READ COMMITTED';
  end if;
end $$;

create or replace function advance_cursors(p_late_rows int default 1000) returns void
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_last             cursors%rowtype;
  v_seq              bigint;
  v_at               timestamptz;
  v_open_writers     text[];
  v_ended_writers    text[]; -- of gaps
  v_cursor_seqs      bigint[] := '{}';
  v_scheduled_cursor timestamptz := '-infinity';
  v_passable_at      timestamptz := '-infinity';
begin
  perform need_read_committed();
  if pg_current_xact_id_if_assigned() is not null
     or not pg_try_advisory_xact_lock(hashtextextended('sluice.advance.' || current_schema(), 0)) then
    return;
  end if;

  -- Not the sequence's last_value, which is 1 before anything was given out.
  v_seq := coalesce(pg_sequence_last_value('ready_seq'), 0);
  v_at := clock_timestamp();
  v_open_writers := open_writers(); -- after v_seq: see 2

  select * into v_last from cursors order by id desc limit 1;
  if found then
    insert into cursor_gap (writer, cursor_seqs, scheduled_cursor)
    select writer, v_last.cursor_seqs, v_last.scheduled_cursor
    from unnest(v_open_writers) as writer
    -- a prepared transaction has lost the name under which it was seen
    where writer = any(v_last.open_writers) or (writer like '-1/%')
    on conflict (writer) do update -- the cursor may have gone back since
    set scheduled_cursor = excluded.scheduled_cursor
    where excluded.scheduled_cursor < cursor_gap.scheduled_cursor;
    -- Before the statements that look at rows, so that these see all that the writers wrote.
    v_ended_writers := array(select writer from cursor_gap where writer <> all(v_open_writers));

    v_cursor_seqs := advanced_seqs(v_last.cursor_seqs, v_last.seq);
    v_passable_at := least(v_last.at, v_at);
    v_scheduled_cursor := least(
      v_passable_at,
      coalesce(
        (select run_at from scheduled
         where run_at >= v_last.scheduled_cursor and run_at < v_last.passable_at
         order by run_at limit 1),
        v_last.passable_at));
    if v_ended_writers <> '{}' then
      perform close_gaps(v_last, v_at, v_open_writers, v_ended_writers, p_late_rows);
    end if;
    delete from cursors where id = v_last.id; -- there is no other; `<=` would walk over all the dead ones
  end if;
  insert into cursors (cursor_seqs, scheduled_cursor, seq, at, passable_at, open_writers, claims)
  values (v_cursor_seqs, v_scheduled_cursor, v_seq, v_at, v_passable_at, v_open_writers,
          coalesce(pg_sequence_last_value('claim_count'), 0));
end $$;

-- The other transactions that may have written to `ready` or `scheduled`, by their virtual transaction ids.
create or replace function open_writers() returns text[]
language plpgsql as $$
begin
  return array(
    select distinct virtualtransaction
    from pg_locks
    where locktype = 'relation'
      and database = (select oid from pg_database where datname = current_database())
      and relation in ('ready'::regclass, 'scheduled'::regclass)
      and mode = 'RowExclusiveLock'
      and pid is distinct from pg_backend_pid());
end $$;

-- Each lane's cursor, moved to the oldest row that is there; or past p_last_seq, where there is none up to it. As an
-- argument the array is decompressed once, not for each lane.
create or replace function advanced_seqs(p_cursor_seqs bigint[], p_last_seq bigint) returns bigint[]
language plpgsql as $$
begin
  return array(
    select case when lane.lane is null then 0 else coalesce(oldest.seq, p_last_seq + 1) end
    from generate_series(1, (select max(lane) from lane)) as numbered(lane)
    left join lane using (lane)
    left join lateral (
      select seq
      from ready
      where ready.lane = lane.lane and seq >= coalesce(p_cursor_seqs[lane.lane], 0) and seq <= p_last_seq
      order by seq
      limit 1
    ) as oldest on true
    order by numbered.lane);
end $$;

-- The owners of these gaps have ended. The rows that they left behind the cursors become ready again, at a new place, at
-- most p_late_rows of each table. The gaps stay until nothing is left in them but what is not due (see 10).
create or replace function close_gaps(
  p_cursors cursors, p_at timestamptz, p_open_writers text[], p_ended_writers text[], p_late_rows int
) returns void
language plpgsql as $$
declare
  v_lanes            int[]; -- whose cursor has moved since
  v_from_seqs        bigint[];
  v_to_seqs          bigint[];
  v_scheduled_cursor timestamptz := (select min(scheduled_cursor) from cursor_gap where writer = any(p_ended_writers));
begin
  select array_agg(lane), array_agg(from_seq), array_agg(to_seq)
  into v_lanes, v_from_seqs, v_to_seqs
  from (
    select lane, min(coalesce(from_seq, 0)) as from_seq, to_seq
    from cursor_gap
    cross join lateral rows from (unnest(cursor_gap.cursor_seqs), unnest(p_cursors.cursor_seqs)) with ordinality
      as of_lane(from_seq, to_seq, lane)
    where writer = any(p_ended_writers) and cursor_gap.cursor_seqs is not null
    group by lane, to_seq
  ) as passed
  where from_seq < to_seq;

  perform renew_seqs(v_lanes, v_from_seqs, v_to_seqs, p_late_rows);
  perform promote_passed(v_scheduled_cursor, p_cursors.scheduled_cursor, p_at, p_late_rows);

  -- A prepared transaction may be the owner under its new name.
  if not exists (select from unnest(p_open_writers) as writer where writer like '-1/%')
     and not exists (
       select from scheduled
       where run_at >= v_scheduled_cursor and run_at < p_cursors.scheduled_cursor and run_at <= p_at)
     and not exists (
       select
       from unnest(v_lanes, v_from_seqs, v_to_seqs) as passed(lane, from_seq, to_seq)
       cross join lateral (
         select from ready
         where ready.lane = passed.lane and seq >= passed.from_seq and seq < passed.to_seq
         order by seq
         limit 1
       ) as late) then
    delete from cursor_gap where writer = any(p_ended_writers);
  end if;
end $$;

-- Gives rows of `ready` that the cursors have passed a new place, at most p_limit. A row that is locked is being claimed.
create or replace function renew_seqs(p_lanes int[], p_from_seqs bigint[], p_to_seqs bigint[], p_limit int) returns void
language plpgsql as $$
begin
  with late as materialized (
    select late.tid
    from unnest(p_lanes, p_from_seqs, p_to_seqs) as passed(lane, from_seq, to_seq)
    cross join lateral (
      select ctid as tid
      from ready
      where ready.lane = passed.lane and seq >= passed.from_seq and seq < passed.to_seq
      order by seq
      limit p_limit
      for update skip locked
    ) as late
    limit p_limit
  )
  update ready set seq = nextval('ready_seq') where ctid = any(array(select tid from late));
end $$;

-- The same for rows of `scheduled`, as far as they are due. A slot is due at once, and the next claim fires it: its time is in its id.
create or replace function promote_passed(p_from timestamptz, p_to timestamptz, p_now timestamptz, p_limit int)
returns void
language plpgsql as $$
declare
  v_earliest timestamptz;
begin
  with late as materialized (
    select ctid as tid, place is not distinct from -1 as is_slot
    from scheduled
    where run_at >= p_from and run_at < p_to and run_at <= p_now
    order by run_at
    limit p_limit
    for update skip locked
  ),
  brought_forward as (
    update scheduled set run_at = p_now where ctid = any(array(select tid from late where is_slot))
    returning run_at
  ),
  removed as (
    delete from scheduled where ctid = any(array(select tid from late where not is_slot))
    returning run_at, id, lane, attempt, abandonments, key, place
  ),
  booked as (
    insert into ledger (lane, scheduled)
    select abs(lane), -count(*) from removed where place is distinct from 0 /* a time-out */ group by abs(lane)
  ),
  moved as (
    insert into ready (seq, id, lane, attempt, abandonments, key, place)
    select nextval('ready_seq'), id, lane, attempt, abandonments, key, place
    from (select * from removed order by run_at, id) as in_order
  )
  select min(run_at) into v_earliest from brought_forward;
  perform keep_reachable(v_earliest);
end $$;

-- Whoever has written to `scheduled` calls this with the earliest run_at of what it wrote (see 6). There is something to do
-- only after the clock has stepped back.
create or replace function keep_reachable(p_run_at timestamptz) returns void
language plpgsql strict as $$
begin
  if p_run_at < (select at from cursors order by id desc limit 1) then
    insert into cursor_gap as gap (writer, scheduled_cursor) values ('xid/' || pg_current_xact_id(), p_run_at)
    on conflict (writer) do update set scheduled_cursor = least(gap.scheduled_cursor, excluded.scheduled_cursor);
  end if;
end $$;

-- For use after rows of `ready` or `scheduled` were changed by hand: the next claims read all rows again.
create or replace function reset_cursors() returns void
language plpgsql
set search_path from current
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('sluice.advance.' || current_schema(), 0));
  delete from cursors;
  -- The open grants are no positions: they say which keys have turns.
  update key_cursor
  set seq = 0, lanes = '{}', seqs = '{}', writers = '{}', from_seqs = '{}', mark_seq = 0, next_seq = 0, next_at = '-infinity';
end $$;
