-- read waiting: the part of the dispatcher (dispatch.sql) that reads rows which wait for their turn.

-- Reads waiting rows after the positions of p_cursor, and moves the positions. It goes from the best priority down and stops
-- when it has found as many keys with a free turn as the claim wants. Keys whose next job was read get their turns at once
-- (look.granted). The next jobs of the others have to be looked up (propose.sql); each comes with the first of its rows that was
-- read. `open`: writers that may still commit rows up to cursor.seq. p_ahead: so many more keys are welcome, if one look finds them.
-- p_is_enough: the claim has found as many keys already, so it looks once, to keep pace with what is enqueued.
create or replace function read_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_lanes key_lanes, p_highest bigint, p_returned bigint[], p_ahead int,
  p_is_enough boolean,
  out cursor key_cursor, out open text[], out look key_look, out has_more boolean
)
language plpgsql as $$
declare
  c_rows     constant int := 5000; -- the most of one look
  c_shares   constant int := 200;  -- fair keys are looked for ahead, so that they take turns
  c_most_ms  constant int := 200;  -- one look after the other, for this long
  c_far      constant int := 2000; -- seqs; see 3 of dispatch.sql
  v_until    timestamptz := clock_timestamp() + make_interval(secs => c_most_ms / 1000.0);
  v_wanted   int;
  v_rows     int;
  v_first    int; -- the lanes of one priority: from here on
  v_next     int := 1; -- and before this
  v_lanes    int[];
  v_fair     boolean[];
  v_look     key_look;
  v_is_whole boolean; -- these are all lanes of the queue's keys
  v_is_far   boolean := p_cursor.writers = '{}' and p_cursor.seq - p_highest >= c_far;
begin
  cursor := p_cursor;
  open := '{}';
  if not v_is_far then
    cursor.seq := coalesce(pg_sequence_last_value('ready_seq'), 0);
    open := open_writers(); -- after cursor.seq was read
  end if;
  look.free := 0;
  has_more := false;
  while v_next <= cardinality(p_lanes.lanes) loop
    v_first := v_next;
    while p_lanes.priorities[v_next] = p_lanes.priorities[v_first] loop
      v_next := v_next + 1;
    end loop;
    v_lanes := p_lanes.lanes[v_first : v_next - 1];
    v_fair := p_lanes.are_fair[v_first : v_next - 1];
    v_is_whole := p_lanes.are_all and cardinality(v_lanes) = cardinality(p_lanes.lanes);
    v_wanted := case when true = any(v_fair) then greatest(p_batch.jobs_left, c_shares)
                     when p_batch.owners is not null then greatest(3 * p_batch.jobs_left / 4, 1) -- see keys_for_each
                     else p_batch.jobs_left end;
    if look.free >= v_wanted then
      has_more := true;
      return;
    end if;
    v_rows := least(rows_to_read(p_batch, v_wanted + p_ahead, p_is_enough), c_rows);
    loop
      v_look := grant_waiting(p_batch, cursor, v_lanes, v_fair, v_rows, p_highest, v_wanted + p_ahead - look.free, v_is_whole,
                              p_returned);
      cursor := move_positions(cursor, v_lanes, case when v_look.is_all then cursor.seq else v_look.last_seq end);
      look := case when look.last_seq is null then v_look else add_look(look, v_look) end;
      p_batch.held := p_batch.held || v_look.together;
      exit when v_look.is_all and not v_is_far;
      if v_look.is_all then
        v_is_far := false;
        cursor.seq := coalesce(pg_sequence_last_value('ready_seq'), 0);
        open := open_writers();
      end if;
      if look.free >= v_wanted or p_is_enough or clock_timestamp() > v_until then
        has_more := true;
        return;
      end if;
      -- Twice as many as would do if as few were free again.
      v_rows := least(greatest(2 * (v_wanted - look.free) * v_rows / greatest(v_look.free, 1), 5), 5 * v_rows, c_rows);
    end loop;
  end loop;
end $$;

-- How many rows a first look reads. If the turns that came back are enough, it only keeps pace with what is enqueued: what was read
-- before is older.
create or replace function rows_to_read(p_batch claim_batch, p_keys int, p_is_enough boolean) returns int
language plpgsql as $$
begin
  return greatest(case when p_is_enough then p_keys / 4
                       when p_batch.buckets is null then p_keys + p_keys / 8 -- because some keys have a turn already
                       else keys_for_each(p_batch) * p_keys end, 5);
end $$;

-- Looks at the next p_rows waiting rows of some lanes, but no further than to the p_wanted-th key whose turn is free.
create or replace function grant_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_lanes int[], p_fair boolean[], p_rows int, p_highest bigint, p_wanted int,
  p_is_whole boolean, p_returned bigint[]
) returns key_look
language plpgsql as $$
declare
  v_lane int;
  v_look key_look;
begin
  if p_is_whole and p_batch.granting <> '{}' and p_batch.buckets is null and p_returned is null then
    v_lane := only_unread(p_lanes, p_cursor);
    if v_lane = any(p_batch.granting) then
      v_look := look_at_new(p_batch, p_cursor, v_lane, least(p_rows, p_wanted));
      if v_look.rows is not null then
        return v_look;
      end if;
    end if;
  end if;
  v_look := look_at_waiting(p_batch, p_cursor, p_lanes, p_fair, p_rows, p_highest, p_wanted, p_is_whole, p_returned);
  if v_look.changed is not null then
    perform write_read_keys(v_look);
  end if;
  return v_look;
end $$;

-- As most often: one lane alone has rows that were not read (only_unread), and each of the next is the only one of its key, whose turn
-- is free. Their turns are going to be part of grants. Null: it is not so.
create or replace function look_at_new(p_batch claim_batch, p_cursor key_cursor, p_lane int, p_rows int) returns key_look
language plpgsql as $$
declare
  v_after   bigint := coalesce(p_cursor.seqs[array_position(p_cursor.lanes, p_lane)], 0);
  v_upto    bigint := p_cursor.seq;
  v_held    bigint[] := p_batch.held;
  v_granted granted_jobs;
  v_look    key_look;
  v_are_new boolean;
begin
  select array_agg(tid order by seq), array_agg(key order by seq), array_agg(seq order by seq), count(*),
         count(distinct key) = count(*) and bool_or(key in (select unnest(v_held))) is not true
  into v_granted.tids, v_granted.keys, v_granted.seqs, v_granted.heads, v_are_new
  from (
    select ctid as tid, key, seq from ready
    where lane = -p_lane and seq > v_after and seq <= v_upto
    order by seq limit p_rows
  ) as next;
  if not v_are_new or not are_unused(v_granted.keys, v_granted.seqs[1]) then
    return null;
  end if;
  v_granted.lanes := array_fill(p_lane, array[v_granted.heads]);
  v_granted.turns := array_fill(0, array[v_granted.heads]);
  v_look.granted := v_granted;
  v_look.together := v_granted.keys;
  v_look.free := v_granted.heads;
  v_look.rows := v_granted.heads;
  v_look.last_seq := v_granted.seqs[v_granted.heads];
  v_look.is_all := v_granted.heads < p_rows;
  return v_look;
end $$;

-- The one of these lanes that alone has rows which were not read yet. Null: there are several, or none. What another lane gets up to
-- p_cursor.seq after this look is of an open writer, so it comes late (see 3 of dispatch.sql).
create or replace function only_unread(p_lanes int[], p_cursor key_cursor) returns int
language plpgsql as $$
declare
  v_unread int[];
begin
  if cardinality(p_lanes) = 1 then
    return p_lanes[1];
  end if;
  v_unread := array(
    select line.lane
    from unnest(p_lanes) as line(lane)
    cross join lateral (
      select from ready
      where ready.lane = -line.lane and seq <= p_cursor.seq
        and seq > coalesce(p_cursor.seqs[array_position(p_cursor.lanes, line.lane)], 0)
      limit 1
    ) as unread
    limit 2);
  return case when cardinality(v_unread) = 1 then v_unread[1] end;
end $$;

-- Whether the turns of these keys are free, and nothing of them waits before p_first. Most keys have no state. Of many keys that is
-- seen at once, though it passes over dead rows where there is one.
create or replace function are_unused(p_keys bigint[], p_first bigint) returns boolean
language plpgsql as $$
declare
  c_many constant int := 10;
begin
  return not (
    (coalesce(cardinality(p_keys), 0) < c_many or exists (select from key_state where key = any(p_keys)))
    and exists (
      select from unnest(p_keys) as new(key)
      cross join lateral (
        select * from key_state where key_state.key = new.key order by version desc limit 1
      ) as state
      where turns > 0 or waits or listed or late is not null or low > p_first));
end $$;

-- The first row of a key that is read here is its next job if all lanes of the queue's keys are read (p_is_whole), because
-- whatever was read before has had its turn. Not so if the key also has a returned turn. A fair key has no order, so any row
-- will do. Such a key gets its turn, or it is noted that a row waits. All others are answered.
--
-- It stops at the p_wanted-th key whose turn is free. With buckets, only keys of these count as wanted, and it looks at more keys in
-- all (keys_for_each).
create or replace function look_at_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_lanes int[], p_fair boolean[], p_rows int, p_highest bigint, p_wanted int,
  p_is_whole boolean, p_returned bigint[]
) returns key_look
language plpgsql as $$
declare
  c_few      constant int := 100; -- on the ring: so a claim for one job finds a key of its own
  v_most     int := max_turns('fair', p_batch.policy);
  v_buckets  int[] := p_batch.buckets;
  v_granting int[] := p_batch.granting;
  v_held     bigint[] := p_batch.held;
  v_granted  granted_jobs;
  v_look     key_look;
  v_others   int := greatest(keys_for_each(p_batch) * p_wanted, case when p_batch.buckets is not null then c_few end);
  v_owners   int[] := p_batch.owners;
  v_free     int; -- in any bucket
  v_last     bigint;
begin
  with next as materialized (select * from unread_rows(p_cursor, p_lanes, p_fair, p_rows))
  select array_agg(tid) filter (where is_granted), array_agg(key) filter (where is_granted),
         array_agg(lane) filter (where is_granted), count(*) filter (where is_granted),
         array_agg(seq) filter (where is_granted), array_agg(turns) filter (where is_granted),
         array_agg(key) filter (where is_granted and is_together), array_agg(key) filter (where number = 2),
         array_agg(key) filter (where is_next and is_held), array_agg(seq) filter (where is_next and is_held),
         array_agg(key) filter (where is_other), array_agg(seq) filter (where is_other),
         array_agg(row(key, state, seq, is_fair, is_granted, not is_together)::read_key)
           filter (where is_next and not is_held and
                     case when is_granted then not is_together or waits or low > seq or late is not null
                          else not waits or (seq <= p_highest and seq < coalesce(late, p_highest + 1)) end),
         count(*) filter (where is_free and is_own), count(*) filter (where is_free), max(seq),
         (select count(*) from next), (select max(seq) from next)
  into v_granted.tids, v_granted.keys, v_granted.lanes, v_granted.heads, v_granted.seqs, v_granted.turns, v_look.together,
       v_look.waited, v_look.behind_keys, v_look.behind_seqs, v_look.other_keys,
       v_look.other_seqs, v_look.changed, v_look.free, v_free, v_last, v_look.rows, v_look.last_seq
  from (
    select *, is_free and is_next as is_granted, (is_own or v_owners is not null) and lane = any(v_granting) as is_together,
           number = 1 and not is_next and (is_free or is_held or waits is not true or seq <= p_highest) as is_other,
           count(*) filter (where is_free and is_own) over before as wanted_before,
           count(*) filter (where is_free) over before as free_before
    from (
      select waiting.key, seq, tid, lane, is_fair, number, is_held, state, coalesce(turns, 0) as turns, low, late, waits,
             number = 1 and coalesce(turns, 0) + is_held::int < case when is_fair then v_most else 1 end and listed is not true
               as is_free,
             v_buckets is null or is_fair or abs(waiting.key % 360) = any(v_buckets) as is_own,
             number = 1 and (p_is_whole or is_fair) and (p_returned is null or waiting.key <> all(p_returned)) as is_next
      from (
        select *, key in (select unnest(v_held)) as is_held
        from (select *, row_number() over (partition by key order by seq) as number from next) as numbered
        where number <= 2 -- there are more, or not
      ) as waiting
      left join lateral (
        select ctid as state, turns, low, late, waits, listed
        from key_state where key_state.key = waiting.key and number = 1 order by version desc limit 1
      ) as state on true
    ) as judged
    window before as (order by seq rows between unbounded preceding and 1 preceding)
    order by seq
  ) as read
  where wanted_before < p_wanted and free_before < v_others;
  v_look.granted := v_granted;
  v_look.is_all := v_look.free < p_wanted and v_free < v_others and v_look.rows < p_rows;
  if v_look.free >= p_wanted or v_free >= v_others then
    v_look.last_seq := v_last;
    v_look.free := p_wanted; -- so a worker that owns nothing of what waits does not read all of it
  end if;
  return v_look;
end $$;

-- The oldest rows of some lanes after the positions.
create or replace function unread_rows(p_cursor key_cursor, p_lanes int[], p_fair boolean[], p_rows int)
returns table (key bigint, seq bigint, tid tid, lane int, is_fair boolean)
language sql stable as $$
  select next.key, next.seq, next.tid, line.lane, line.is_fair
  from unnest(p_lanes, p_fair) as line(lane, is_fair)
  cross join lateral (
    select ready.key, ready.seq, ready.ctid as tid from ready
    where ready.lane = -line.lane and ready.seq <= p_cursor.seq
      and ready.seq > coalesce(p_cursor.seqs[array_position(p_cursor.lanes, line.lane)], 0)
    order by ready.seq limit p_rows
  ) as next order by next.seq limit p_rows
$$;

-- On the ring: for each wanted key, as many are looked at in all. If the owners of the buckets are known, the others get their turns
-- ahead, so there are as many as workers, and a claim wants three quarters of what it asks for: a worker that owns more keys than this
-- one gets one grant too, and not two halves. Without the owners each of these jobs has to be put into its lane.
create or replace function keys_for_each(p_batch claim_batch) returns int
language plpgsql as $$
declare
  c_listed  constant int := 4;
  c_workers constant int := 16;
begin
  return case when p_batch.buckets is null then 1
              when p_batch.owners is null then c_listed
              else least(greatest(round(360.0 / greatest(cardinality(p_batch.buckets), 1)), 1), c_workers) end;
end $$;

-- Keys that have got a turn, or of which a row waits behind a turn that is out.
create or replace function write_read_keys(p_look key_look) returns void
language plpgsql as $$
declare
  v_waited bigint[] := coalesce(p_look.waited, '{}');
begin
  insert into key_state (key, turns, low, waits, listed)
  select key, 1, case when is_fair then 0 else seq end, key = any(v_waited), is_fair
  from unnest(p_look.changed) where state is null;
  update key_state
  set turns = turns + (is_granted and is_counted)::int,
      low = case when is_granted and not is_fair then seq else low end,
      late = case when not is_granted then least(late, seq) end,
      waits = not is_granted or turns > 0 or is_counted and read.key = any(v_waited),
      listed = case when is_granted then is_fair else listed end
  from unnest(p_look.changed) as read
  where key_state.ctid = read.state;
end $$;

-- What two looks have seen, one after the other.
create or replace function add_look(p_look key_look, p_next key_look) returns key_look
language plpgsql as $$
begin
  p_look.granted := add_granted(p_look.granted, p_next.granted);
  p_look.together := p_look.together || p_next.together;
  p_look.waited := p_look.waited || p_next.waited;
  p_look.behind_keys := p_look.behind_keys || p_next.behind_keys;
  p_look.behind_seqs := p_look.behind_seqs || p_next.behind_seqs;
  p_look.other_keys := p_look.other_keys || p_next.other_keys;
  p_look.other_seqs := p_look.other_seqs || p_next.other_seqs;
  p_look.changed := p_look.changed || p_next.changed;
  p_look.free := p_look.free + p_next.free;
  p_look.last_seq := coalesce(p_next.last_seq, p_look.last_seq);
  return p_look;
end $$;

create or replace function add_granted(p_granted granted_jobs, p_more granted_jobs) returns granted_jobs
language plpgsql as $$
begin
  if p_granted.heads > 0 then
    return row(p_granted.tids || p_more.tids, p_granted.keys || p_more.keys, p_granted.lanes || p_more.lanes,
               p_granted.heads + coalesce(p_more.heads, 0), p_granted.seqs || p_more.seqs, p_granted.turns || p_more.turns,
               null)::granted_jobs;
  end if;
  return p_more;
end $$;

-- Takes back the turns that some keys have just got, because an older job of the key was committed late, from p_seqs on.
-- Answers what is left.
create or replace function take_back(p_look key_look, p_keys bigint[], p_seqs bigint[]) returns key_look
language plpgsql as $$
begin
  if (p_look.granted).keys && p_keys then
    perform reset_states(array_agg(key), array_agg(seq))
    from unnest(p_keys, p_seqs) as late(key, seq) where key = any((p_look.granted).keys);
    p_look.granted := without_keys(p_look.granted, p_keys);
    p_look.together := array(select unnest(p_look.together) except select unnest(p_keys));
  end if;
  return p_look;
end $$;

-- These keys did not take the turns that they were given: jobs of theirs wait from p_seqs on.
create or replace function reset_states(p_keys bigint[], p_seqs bigint[]) returns void
language plpgsql as $$
begin
  update key_state
  set turns = greatest(turns - 1, 0), low = least(low, reset.seq - 1), waits = true, listed = false
  from (
    select seq, (select ctid from key_state where key_state.key = entry.key order by version desc limit 1) as state
    from unnest(p_keys, p_seqs) as entry(key, seq)
  ) as reset
  where key_state.ctid = reset.state;
end $$;

create or replace function without_keys(p_granted granted_jobs, p_keys bigint[]) returns granted_jobs
language plpgsql as $$
begin
  select array_agg(tid order by number), array_agg(key order by number), array_agg(lane order by number), count(*),
         array_agg(seq order by number), array_agg(turns order by number)
  into p_granted
  from unnest(p_granted.tids, p_granted.keys, p_granted.lanes, p_granted.seqs, p_granted.turns) with ordinality
    as entry(tid, key, lane, seq, turns, number)
  where key <> all(p_keys);
  return p_granted;
end $$;

-- How many turns of one key may be out.
create or replace function max_turns(kind text, policy key_policy) returns int
language sql immutable
return case when kind = 'ordered' then 1 else coalesce((policy).concurrency, 2147483647) end;

create or replace function move_positions(p_cursor key_cursor, p_lanes int[], p_seq bigint) returns key_cursor
language plpgsql as $$
begin
  p_cursor.highest := greatest(p_cursor.highest, p_seq);
  if cardinality(p_lanes) = 1 and p_cursor.lanes = p_lanes then -- most queues have one lane of jobs with keys
    p_cursor.seqs := array[greatest(p_cursor.seqs[1], p_seq)];
    return p_cursor;
  end if;
  select array_agg(lane), array_agg(seq) into p_cursor.lanes, p_cursor.seqs
  from (
    select lane, max(seq) as seq
    from (
      select * from unnest(p_cursor.lanes, p_cursor.seqs) as known(lane, seq)
      union all
      select lane, p_seq from unnest(p_lanes) as lane
    ) as positions
    group by lane
  ) as moved;
  return p_cursor;
end $$;

-- What writers that have ended left up to p_highest: the first such row of each key. It also finds rows that were read
-- before, which does no harm. Null: nothing.
create or replace function late_rows(
  p_cursor key_cursor, p_ended text[], p_highest bigint, out keys bigint[], out seqs bigint[]
)
language plpgsql as $$
declare
  v_from bigint := (select min(from_seq) from unnest(p_cursor.writers, p_cursor.from_seqs) as open(writer, from_seq)
                    where writer = any(p_ended));
begin
  if v_from < p_highest then
    select array_agg(first.key), array_agg(first.seq) into keys, seqs
    from (
      select late.key, min(late.seq) as seq
      from (select lane from lane where queue = p_cursor.queue and kind in ('ordered', 'fair') offset 0) as line
      cross join lateral (
        select ready.key, ready.seq from ready
        where ready.lane = -line.lane and ready.seq > v_from and ready.seq <= p_highest
        offset 0
      ) as late
      group by late.key
    ) as first;
  end if;
end $$;
