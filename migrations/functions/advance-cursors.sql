-- advance_cursors: moves the cursors to the right, past rows that are gone, without ever passing a row that is
-- there or may still appear.
--
-- A claim reads a lane from its cursor on, so whatever the cursor has passed is never found again. And a
-- transaction may take seq 100, stay open while seq 200 is committed and claimed, and appear after that.
--
-- Invariant: in every snapshot, a row of `ready` that lies before its lane's cursor, or can come to lie there by the
-- commit of its owner, belongs to a transaction that has a gap in which the cursor stood before the row.
--
-- 1. Whoever inserts into `ready` holds its RowExclusiveLock from before nextval until its transaction ends.
-- 2. An advance reads the last seq given out and then the open writers (the holders of that lock), and keeps both with the cursors. So
--    whoever owns a seq up to there is among the open writers or has ended.
-- 3. The next advance finds each of those open writers ended, and then its fresh snapshot sees all that they wrote; or
--    still open: then it writes a gap for them, from where the cursors stood.
-- 4. Cursors and gaps are rows of one transaction: a claim sees both or neither, and a rollback takes both back.
-- 5. When the owner of a gap has ended, its rows behind the cursors are given a new seq: late commit, late place.
--
-- The cursor of `scheduled` goes by the same rules with times for seqs. But a clock can step back, so it is not taken
-- for granted that a later writer has later times:
--
-- 6. Whoever writes to `scheduled` reads the newest cursors after that, so with the lock held. Where it has written a
--    run_at before their `at`, it writes a gap of its own beside the row (keep_reachable).
-- 7. Advance n keeps with its open writers how far the next may go: the earlier of its own `at` and the one before. Of those
--    who take the lock after the open writers were read, all have seen one of these two, or a later one. So what they write
--    before that time has a gap, and what they write after it is not passed.
-- 8. Advance n + 1 passes no further. Whoever it cannot see yet is among the open writers and gets a gap by 3, or has one.
-- 9. `at` is the clock and goes back with it, and the cursor goes back with `at`: later writers have nothing to mark.
-- 10. When the owner of a gap has ended, its rows behind the cursor become ready if they are due. The others are not
--     behind it any more: the cursor is never ahead of the clock.
--
-- This needs statements that each take a new snapshot, hence READ COMMITTED, and a transaction that has written nothing
-- yet, since its own rows would count as there and then be rolled back. A writer under another isolation level may read
-- cursors that are too old for 7: that takes a step of the clock as well, and check_reach finds it.

-- What rests on fresh snapshots fails rather than being wrong without a word, where a role or a database has another
-- level as its default. The driver answers a serialization failure by a second try that names the level.
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
  v_last          cursors%rowtype;
  v_seq           bigint;
  v_at            timestamptz;
  v_open_writers  text[];
  v_ended         text[]; -- the owners of these gaps have
  v_cursor_seqs          bigint[] := '{}';
  v_last_cursor_seqs     bigint[]; -- as a variable it is decompressed once, not for each lane
  v_scheduled_cursor timestamptz := '-infinity';
  v_passable_at   timestamptz := '-infinity';
begin
  perform need_read_committed();
  if pg_current_xact_id_if_assigned() is not null
     or not pg_try_advisory_xact_lock(hashtextextended('sluice.advance.' || current_schema(), 0)) then
    return;
  end if;

  -- not its last_value: that of a new sequence is 1, which it has yet to give out
  v_seq := coalesce(pg_sequence_last_value('ready_seq'), 0);
  v_at := clock_timestamp();
  v_open_writers := array(
    select distinct virtualtransaction
    from pg_locks
    where locktype = 'relation'
      and database = (select oid from pg_database where datname = current_database())
      and relation in ('ready'::regclass, 'scheduled'::regclass)
      and mode = 'RowExclusiveLock'
      and pid is distinct from pg_backend_pid());

  select * into v_last from cursors order by id desc limit 1;
  if found then
    v_last_cursor_seqs := v_last.cursor_seqs;
    insert into cursor_gap (writer, cursor_seqs, scheduled_cursor)
    select writer, v_last.cursor_seqs, v_last.scheduled_cursor
    from unnest(v_open_writers) as writer
    -- a prepared transaction has lost the name it was sighted under
    where writer = any(v_last.open_writers) or writer like '-1/%'
    on conflict (writer) do update -- the cursor may have gone back since
    set scheduled_cursor = excluded.scheduled_cursor
    where excluded.scheduled_cursor < cursor_gap.scheduled_cursor;
    -- Before the looks below, so that these see all that the owners wrote.
    v_ended := array(select writer from cursor_gap where writer <> all(v_open_writers));

    v_cursor_seqs := array(
      select case when lane.lane is null then 0 else coalesce(oldest.seq, v_last.seq + 1) end
      from generate_series(1, (select max(lane) from lane)) as numbered(lane)
      left join lane using (lane)
      left join lateral (
        select seq
        from ready
        where ready.lane = lane.lane and seq >= coalesce(v_last_cursor_seqs[lane.lane], 0) and seq <= v_last.seq
        order by seq
        limit 1
      ) as oldest on true
      order by numbered.lane);
    v_passable_at := least(v_last.at, v_at);
    v_scheduled_cursor := least(
      v_passable_at,
      coalesce(
        (select run_at from scheduled
         where run_at >= v_last.scheduled_cursor and run_at < v_last.passable_at
         order by run_at limit 1),
        v_last.passable_at));
    if v_ended <> '{}' then
      perform close_gaps(v_last, v_at, v_open_writers, v_ended, p_late_rows);
    end if;
    delete from cursors where id = v_last.id; -- there is no other; `<=` would walk over all the dead ones
  end if;
  insert into cursors (cursor_seqs, scheduled_cursor, seq, at, passable_at, open_writers, claims)
  values (v_cursor_seqs, v_scheduled_cursor, v_seq, v_at, v_passable_at, v_open_writers, coalesce(pg_sequence_last_value('claim_count'), 0));
end $$;

-- The owners of these gaps have ended: what they left behind the cursors becomes ready again with a new place. Bounded;
-- the gaps stay until nothing is left in them but what is not due (see 10).
create or replace function close_gaps(
  p_cursors cursors, p_at timestamptz, p_open_writers text[], p_ended text[], p_late_rows int
) returns void
language plpgsql as $$
declare
  v_lanes         int[]; -- in which the cursor has moved since
  v_cursor_seqs          bigint[]; -- from where
  v_reached       bigint[]; -- to where
  v_scheduled_cursor timestamptz;
begin
  select array_agg(lane), array_agg(low), array_agg(reached),
         (select min(scheduled_cursor) from cursor_gap where writer = any(p_ended))
  into v_lanes, v_cursor_seqs, v_reached, v_scheduled_cursor
  from (
    select lane, min(coalesce(low, 0)) as low, reached
    from cursor_gap
    cross join lateral rows from (unnest(cursor_gap.cursor_seqs), unnest(p_cursors.cursor_seqs)) with ordinality
      as of_lane(low, reached, lane)
    where writer = any(p_ended) and cursor_gap.cursor_seqs is not null
    group by lane, reached
  ) as passed
  where low < reached;

  with late as materialized (
    select late.tid
    from unnest(v_lanes, v_cursor_seqs, v_reached) as passed(lane, low, reached)
    cross join lateral (
      select ctid as tid
      from ready
      where ready.lane = passed.lane and seq >= passed.low and seq < passed.reached
      order by seq
      limit p_late_rows
      for update skip locked
    ) as late
    limit p_late_rows
  )
  update ready set seq = nextval('ready_seq') where ctid = any(array(select tid from late));

  with late as materialized (
    select ctid as tid
    from scheduled
    where run_at >= v_scheduled_cursor and run_at < p_cursors.scheduled_cursor and run_at <= p_at
    order by run_at
    limit p_late_rows
    for update skip locked
  ),
  removed as (
    delete from scheduled where ctid = any(array(select tid from late)) returning id, lane, attempt, abandonments
  ),
  booked as (
    insert into ledger (lane, scheduled) select lane, -count(*) from removed group by lane
  )
  insert into ready (seq, id, lane, attempt, abandonments)
  select nextval('ready_seq'), id, lane, attempt, abandonments from removed;

  -- a prepared transaction may be the owner under its new name
  if not exists (select from unnest(p_open_writers) as writer where writer like '-1/%')
     and not exists (
       select from scheduled
       where run_at >= v_scheduled_cursor and run_at < p_cursors.scheduled_cursor and run_at <= p_at)
     and not exists (
       select
       from unnest(v_lanes, v_cursor_seqs, v_reached) as passed(lane, low, reached)
       cross join lateral (
         select from ready
         where ready.lane = passed.lane and seq >= passed.low and seq < passed.reached
         order by seq
         limit 1
       ) as late) then
    delete from cursor_gap where writer = any(p_ended);
  end if;
end $$;

-- For whoever has written to `scheduled`, with the earliest run_at of it (see 6). Only after a step back of the clock is
-- there anything to do.
create or replace function keep_reachable(p_run_at timestamptz) returns void
language plpgsql strict as $$
begin
  if p_run_at < (select at from cursors order by id desc limit 1) then
    insert into cursor_gap as known (writer, scheduled_cursor) values ('xid/' || pg_current_xact_id(), p_run_at)
    on conflict (writer) do update set scheduled_cursor = least(known.scheduled_cursor, excluded.scheduled_cursor);
  end if;
end $$;

-- After rows of `ready` or `scheduled` were changed by hand: all of them are ahead again.
create or replace function reset_cursors() returns void
language plpgsql
set search_path from current
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('sluice.advance.' || current_schema(), 0));
  delete from cursors;
end $$;
