-- advance_cursors: moves the cursors to the right, past rows that are gone, without ever passing a row that is
-- there or may still appear.
--
-- A claim reads a lane from its cursor on, so whatever the cursor has passed is never found again. And a
-- transaction may take seq 100, stay open while seq 200 is committed and claimed, and appear after that.
--
-- Invariant: no row of `ready` that is, or can become, visible has a seq before its lane's cursor, unless its owner is
-- named by a committed gap of that lane that begins before it, or by the committed last sighting, of whose time the
-- lane's cursor stood before it.
--
-- 1. Whoever inserts into `ready` holds its RowExclusiveLock from before nextval until its transaction ends.
-- 2. An advance reads the last seq given out and then the holders of that lock, and keeps both as a sighting,
--    together with where each cursor stands. So whoever owns a seq up to there is among the holders or has ended.
-- 3. The next advance finds each of those holders ended, and then its fresh snapshot sees all that they wrote; or
--    still open: then it writes a gap for them, from where the cursor stood at the sighting.
-- 4. setval is not undone by a rollback, gaps and sightings are. So when a cursor stands further than the last
--    sighting says, an advance that was rolled back has moved it: whatever it passed is looked through again.
-- 5. When the owner of a gap has ended, its rows behind the cursor are given a new seq: late commit, late place.
--
-- The cursor of `scheduled` goes by the same rules with times for seqs: nothing is inserted with a run_at before
-- its writer took the lock. This needs statements that each take a new snapshot, hence READ COMMITTED, and a
-- transaction that has written nothing yet, since its own rows would count as there and then be rolled back.

create or replace function advance_cursors(p_lanes int[] default null, p_late_rows int default 1000)
returns void
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_schedule constant int := 0; -- stands for the schedule where others name a lane
  v_last     cursor_sighting%rowtype;
  v_seq      bigint;
  v_at       timestamptz;
  v_holders  text[];
  v_open     text[]; -- holders of the last sighting that are still there
  v_lane     record;
  v_gap      record;
  v_low      bigint;
  v_schedule bigint;
begin
  if pg_current_xact_id_if_assigned() is not null
     or current_setting('transaction_isolation') <> 'read committed'
     or not pg_try_advisory_xact_lock(hashtextextended('sluice.advance.' || current_schema(), 0)) then
    return;
  end if;

  perform setval('advanced_generation', coalesce(pg_sequence_last_value('lease_generation'), 0));

  select last_value into v_seq from ready_seq;
  v_at := clock_timestamp();
  v_holders := array(
    select distinct virtualtransaction
    from pg_locks
    where locktype = 'relation'
      and database = (select oid from pg_database where datname = current_database())
      and relation in ('ready'::regclass, 'scheduled'::regclass)
      and mode = 'RowExclusiveLock'
      and pid is distinct from pg_backend_pid());

  select * into v_last from cursor_sighting order by id desc limit 1;
  if found then
    v_open := array(
      select holder from unnest(v_holders) as holder
      -- a prepared transaction has lost the name it was sighted under
      where holder = any(v_last.holders) or holder like '-1/%');

    for v_lane in
      select lanes.*, known_low(v_last, lanes.lane) as known
      from (
        select lane, cursor_sequence, coalesce(pg_sequence_last_value(cursor_sequence), 0) as low from lane offset 0
      ) as lanes
      where p_lanes is null or lane = any(p_lanes) or low > known_low(v_last, lane)
    loop
      select seq into v_low
      from ready
      where lane = v_lane.lane and seq >= v_lane.low and seq <= v_last.seq
      order by seq
      limit 1;
      v_low := coalesce(v_low, v_last.seq + 1);
      perform note_gaps(v_last.holders, v_open, v_lane.lane, v_lane.known, v_lane.low);
      if v_low > v_lane.low then
        perform setval(coalesce(v_lane.cursor_sequence, make_cursor(v_lane.lane)), v_low);
      end if;
    end loop;

    v_schedule := scheduled_low();
    select micros_of(run_at) into v_low
    from scheduled
    where run_at >= time_of_micros(v_schedule) and run_at < v_last.at
    order by run_at
    limit 1;
    v_low := coalesce(v_low, micros_of(v_last.at)) - 1;
    perform note_gaps(v_last.holders, v_open, c_schedule, known_low(v_last, c_schedule), v_schedule);
    if v_low > v_schedule then
      perform setval('scheduled_cursor', v_low);
    end if;

    for v_gap in
      select * from cursor_gap where holder <> all(v_holders)
    loop
      perform close_gap(v_gap, p_late_rows, v_holders);
    end loop;
    delete from cursor_sighting where id = v_last.id; -- there is no other; `<=` would walk over all the dead ones
  end if;
  insert into cursor_sighting (seq, at, holders, lanes, lows)
  select v_seq, v_at, v_holders, array_agg(lane) || c_schedule,
         array_agg(coalesce(pg_sequence_last_value(cursor_sequence), 0)) || scheduled_low()
  from lane;
end $$;

-- Where a lane's cursor stood at the sighting. A lane that is younger than that has all its rows ahead.
create or replace function known_low(p_sighting cursor_sighting, p_lane int) returns bigint
language sql stable
return coalesce(p_sighting.lows[array_position(p_sighting.lanes, p_lane)], 0);

-- Gaps for the transactions that the cursor passes while they are open; and where an advance that was rolled back has
-- moved it already, for all that it may have passed, of whatever owner.
create or replace function note_gaps(p_holders text[], p_open text[], p_lane int, p_known bigint, p_low bigint)
returns void
language plpgsql as $$
begin
  if cardinality(p_open) > 0 or p_low > p_known then
    insert into cursor_gap (holder, lane, from_seq)
    select holder, p_lane, p_known
    from unnest(case when p_low > p_known then p_holders || p_open || 'undone'::text else p_open end) as holder
    on conflict do nothing;
  end if;
end $$;

-- The owner of the gap has ended: what it left behind the cursor becomes ready again with a new place. Bounded;
-- the gap stays until nothing is left in it.
create or replace function close_gap(p_gap record, p_late_rows int, p_holders text[]) returns void
language plpgsql as $$
declare
  v_upto bigint;
  v_from bigint;
begin
  if p_gap.lane = 0 then
    v_upto := scheduled_low();
    with late as materialized (
      select ctid as tid
      from scheduled
      where run_at >= time_of_micros(p_gap.from_seq) and run_at <= time_of_micros(v_upto)
      order by run_at
      limit p_late_rows
      for update skip locked
    ),
    removed as (
      delete from scheduled where ctid = any(array(select tid from late)) returning id, lane, attempt, strikes
    )
    insert into ready (seq, id, lane, attempt, strikes)
    select nextval('ready_seq'), id, lane, attempt, strikes from removed;
    select micros_of(run_at) into v_from
    from scheduled
    where run_at >= time_of_micros(p_gap.from_seq) and run_at <= time_of_micros(v_upto)
    order by run_at
    limit 1;
  else
    select coalesce(pg_sequence_last_value(cursor_sequence), 0) into v_upto from lane where lane = p_gap.lane;
    with late as materialized (
      select ctid as tid
      from ready
      where lane = p_gap.lane and seq >= p_gap.from_seq and seq < v_upto
      order by seq
      limit p_late_rows
      for update skip locked
    )
    update ready set seq = nextval('ready_seq') where ctid = any(array(select tid from late));
    select seq into v_from
    from ready
    where lane = p_gap.lane and seq >= p_gap.from_seq and seq < v_upto
    order by seq
    limit 1;
  end if;

  if v_from is not null then
    update cursor_gap set from_seq = v_from where holder = p_gap.holder and lane = p_gap.lane;
  -- a prepared transaction may be the owner under its new name
  elsif not exists (select from unnest(p_holders) as holder where holder like '-1/%') then
    delete from cursor_gap where holder = p_gap.holder and lane = p_gap.lane;
  end if;
end $$;

-- A lane's cursor is a sequence: it moves without a row version, which a pinned database could not remove.
create or replace function make_cursor(p_lane int) returns regclass
language plpgsql as $$
declare
  v_name text := format('lane_%s_cursor', p_lane);
begin
  execute format('create sequence %I minvalue 0 start 0', v_name);
  update lane set cursor_sequence = v_name::regclass where lane = p_lane;
  return v_name::regclass;
end $$;

create or replace function micros_of(moment timestamptz) returns bigint
language sql immutable parallel safe
return (extract(epoch from moment) * 1000000)::bigint;

create or replace function time_of_micros(micros bigint) returns timestamptz
language sql immutable parallel safe
return '1970-01-01 00:00:00+00'::timestamptz + make_interval(secs => micros / 1000000.0);

-- Where the cursor of `scheduled` is.
create or replace function scheduled_low() returns bigint
language sql volatile
as $$ select coalesce(pg_sequence_last_value('scheduled_cursor'::regclass), 0) $$;

-- After a restore or a failover the sequences may be ahead of the rows: start them again at the left.
create or replace function reset_cursors() returns void
language plpgsql
set search_path from current
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('sluice.advance.' || current_schema(), 0));
  delete from cursor_sighting;
  perform setval(cursor_sequence, 0) from lane where cursor_sequence is not null;
  perform setval('scheduled_cursor', 0);
end $$;
