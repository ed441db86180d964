-- read waiting: the part of the dispatcher (dispatch.sql) that reads rows which wait for their turn.

-- Reads waiting rows after the positions of p_cursor, and moves the positions. It goes from the best priority down and stops
-- when it has found as many keys with a free turn as the claim wants. Keys whose next job was read get their turns at once
-- (`granted`). The next jobs of the others have to be looked up (propose.sql); each comes with the first of its rows that was
-- read. `open`: writers that may still commit rows up to cursor.seq. `has_written`: states have changed.
create or replace function read_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_types text[], p_highest bigint, p_returned bigint[],
  out cursor key_cursor, out open text[], out granted granted_jobs, out other_keys bigint[], out other_seqs bigint[],
  out has_written boolean, out has_more boolean
)
language plpgsql as $$
declare
  c_rows     constant int := 5000; -- the most of one look; the first takes as many as jobs are wanted
  c_shares   constant int := 200;  -- fair keys are looked for ahead, so that they take turns
  c_most_ms  constant int := 100;  -- one look after the other, for this long
  c_far      constant int := 2000; -- seqs; see 3 of dispatch.sql
  v_until    timestamptz := clock_timestamp() + make_interval(secs => c_most_ms / 1000.0);
  v_wanted   int;
  v_free     int := 0;
  v_rows     int;
  v_level    record;
  v_look     record;
  v_is_whole boolean; -- the level has all lanes of the queue's keys
  v_is_far   boolean := p_cursor.writers = '{}' and p_cursor.seq - p_highest >= c_far;
begin
  cursor := p_cursor;
  open := '{}';
  if not v_is_far then
    cursor.seq := coalesce(pg_sequence_last_value('ready_seq'), 0);
    open := open_writers(); -- after cursor.seq was read
  end if;
  has_written := false;
  has_more := false;
  for v_level in
    select array_agg(lane) filter (where is_asked) as lanes, array_agg(kind) filter (where is_asked) as kinds,
           sum(count(*)) over () as lanes_of_queue
    from (
      select lane, kind, priority,
             type = any(p_types) and type <> all(array(select name from pause where pause.kind = 'type')) as is_asked
      from lane where queue = p_batch.queue and kind in ('ordered', 'fair')
    ) as line
    group by priority
    order by priority desc
  loop
    continue when v_level.lanes is null;
    v_is_whole := v_is_whole is null and cardinality(v_level.lanes) = v_level.lanes_of_queue;
    v_wanted := case when 'fair' = any(v_level.kinds) then greatest(p_batch.jobs_left, c_shares) else p_batch.jobs_left end;
    if v_free >= v_wanted then
      has_more := true;
      return;
    end if;
    v_rows := greatest(p_batch.jobs_left, 5);
    loop
      v_look := grant_waiting(p_batch, cursor, v_level.lanes, v_level.kinds, v_rows, p_highest, v_wanted - v_free, v_is_whole,
                              p_returned);
      cursor := move_positions(cursor, v_level.lanes, case when v_look.is_all then cursor.seq else v_look.last_seq end);
      granted := add_granted(granted, v_look.granted);
      other_keys := other_keys || v_look.other_keys;
      other_seqs := other_seqs || v_look.other_seqs;
      has_written := has_written or v_look.has_written;
      v_free := v_free + v_look.free;
      exit when v_look.is_all and not v_is_far;
      if v_look.is_all then
        v_is_far := false;
        cursor.seq := coalesce(pg_sequence_last_value('ready_seq'), 0);
        open := open_writers();
      end if;
      if v_free >= v_wanted or clock_timestamp() > v_until then
        has_more := true;
        return;
      end if;
      v_rows := least(5 * v_rows, c_rows);
    end loop;
  end loop;
end $$;

-- Looks at the next p_rows waiting rows of some lanes, but no further than to the p_wanted-th key whose turn is free. With
-- buckets, only keys of these count as wanted, and up to four times as many in all.
--
-- The first row of a key that is read here is its next job if all lanes of the queue's keys are read (p_is_whole), because
-- whatever was read before has had its turn. Not so if the key also has a returned turn. A fair key has no order, so any row
-- will do. Such a key gets its turn, or its state says that a row waits. All others are answered.
create or replace function grant_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_lanes int[], p_kinds text[], p_rows int, p_highest bigint, p_wanted int,
  p_is_whole boolean, p_returned bigint[], out granted granted_jobs, out other_keys bigint[], out other_seqs bigint[],
  out has_written boolean, out last_seq bigint, out free int, out is_all boolean
)
language plpgsql as $$
begin
  with waiting as materialized (
    select next.key, next.seq, next.tid, line.lane, line.kind
    from unnest(p_lanes, p_kinds) as line(lane, kind)
    cross join lateral (
      select ready.key, ready.seq, ready.ctid as tid from ready
      where ready.lane = -line.lane and ready.seq <= p_cursor.seq
        and ready.seq > coalesce(p_cursor.seqs[array_position(p_cursor.lanes, line.lane)], 0)
      order by ready.seq limit p_rows
    ) as next order by next.seq limit p_rows
  ),
  of_key as materialized (
    select first.*, state.tid as state, coalesce(state.turns, 0) as turns, state.late, state.waits,
           coalesce(state.turns, 0) < max_turns(kind, p_batch.policy) and listed is not true as is_free,
           p_batch.buckets is null or kind = 'fair' or abs(first.key % 360) = any(p_batch.buckets) as is_own,
           (p_is_whole or kind = 'fair') and (p_returned is null or first.key <> all(p_returned)) as is_next
    from (
      select distinct on (key) *, coalesce(lead(key) over (order by key, seq) = key, false) as has_more
      from waiting order by key, seq
    ) as first
    left join lateral (
      select ctid as tid, key_state.turns, key_state.late, key_state.waits, listed
      from key_state where key_state.key = first.key order by version desc limit 1
    ) as state on true
  ),
  cut as materialized (
    select least(
      (select seq from of_key where is_free and is_own order by seq offset p_wanted - 1 limit 1),
      case when p_batch.buckets is not null then
        (select seq from of_key where is_free order by seq offset 4 * p_wanted - 1 limit 1)
      end) as seq
  ),
  read as materialized (
    select of_key.*, is_free and is_next as is_granted,
           not is_next and (is_free or not waits or seq <= p_highest) as is_other
    from of_key where seq <= coalesce((select seq from cut), seq) order by seq
  ),
  inserted as (
    insert into key_state (key, turns, low, waits, listed)
    select key, 1, case when kind = 'fair' then 0 else seq end, has_more, kind = 'fair'
    from read where state is null and is_granted
  ),
  updated as (
    update key_state
    set turns = read.turns + is_granted::int, low = case when is_granted and kind = 'ordered' then read.seq else low end,
        late = case when not is_granted then least(read.late, read.seq) end,
        waits = not is_granted or read.turns > 0 or has_more, listed = case when is_granted then kind = 'fair' else listed end
    from read
    where key_state.ctid = read.state and is_next
      and (is_granted or not read.waits or (read.seq <= p_highest and read.seq < coalesce(read.late, p_highest + 1)))
    returning 1
  )
  select array_agg(tid) filter (where is_granted), array_agg(key) filter (where is_granted),
         array_agg(lane) filter (where is_granted), count(*) filter (where is_granted),
         array_agg(read.seq) filter (where is_granted), array_agg(turns) filter (where is_granted),
         array_agg(key) filter (where is_other), array_agg(read.seq) filter (where is_other), exists (select from updated),
         coalesce((select seq from cut), (select max(seq) from waiting)),
         case when count(*) filter (where is_free) >= 4 * p_wanted then p_wanted
              else count(*) filter (where is_free and is_own) end,
         (select seq from cut) is null and (select count(*) from waiting) < p_rows
  into granted.tids, granted.keys, granted.lanes, granted.heads, granted.seqs, granted.turns,
       other_keys, other_seqs, has_written, last_seq, free, is_all
  from read;
end $$;

create or replace function add_granted(p_granted granted_jobs, p_more granted_jobs) returns granted_jobs
language plpgsql as $$
begin
  if p_granted.heads > 0 then
    p_more := row(p_granted.tids || p_more.tids, p_granted.keys || p_more.keys, p_granted.lanes || p_more.lanes,
                  p_granted.heads + p_more.heads, p_granted.seqs || p_more.seqs, p_granted.turns || p_more.turns)::granted_jobs;
  end if;
  return p_more;
end $$;

-- Takes back the turns that some keys have just got, because an older job of the key was committed late, from p_seqs on.
-- Answers what is left.
create or replace function take_back(p_granted granted_jobs, p_keys bigint[], p_seqs bigint[]) returns granted_jobs
language plpgsql as $$
begin
  if not p_granted.keys && p_keys then
    return p_granted;
  end if;
  perform reset_states(array_agg(key), array_agg(seq), 1)
  from unnest(p_keys, p_seqs) as late(key, seq) where key = any(p_granted.keys);
  return without_keys(p_granted, p_keys);
end $$;

-- These keys did not take the turns that they were given: jobs of theirs wait from p_seqs on. p_turns: so many turns of each
-- are free again.
create or replace function reset_states(p_keys bigint[], p_seqs bigint[], p_turns int) returns void
language plpgsql as $$
begin
  update key_state
  set turns = turns - p_turns, low = least(low, reset.seq - 1), waits = true, listed = false
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
