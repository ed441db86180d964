-- read waiting: the part of the dispatcher (dispatch.sql) that reads rows which wait for their turn.

-- Reads waiting rows after the positions of p_cursor and up to p_last, and moves the positions. It goes from the best
-- priority down and stops when it has found as many keys with a free turn as the claim wants. Answers these keys, and keys
-- with a row that may lie behind a turn that is out. `is_whole`: these were all lanes of the queue's keys, at one priority, so
-- that the first row of a key that was read is the first of all.
create or replace function read_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_types text[], p_last bigint, p_highest bigint,
  out cursor key_cursor, out proposals key_proposal[], out is_whole boolean, out met_again boolean,
  out has_more boolean
)
language plpgsql as $$
declare
  c_rows    constant int := 5000; -- the most of one look; the first takes as many as jobs are wanted
  c_shares  constant int := 200;  -- fair keys are looked for ahead, so that they take turns
  c_most_ms constant int := 100;  -- one look after the other, for this long
  v_until   timestamptz := clock_timestamp() + make_interval(secs => c_most_ms / 1000.0);
  v_wanted  int;
  v_free    int := 0;
  v_rows    int;
  v_level   record;
  v_look    record;
begin
  cursor := p_cursor;
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
    is_whole := is_whole is null and cardinality(v_level.lanes) = v_level.lanes_of_queue;
    v_wanted := case when 'fair' = any(v_level.kinds) then greatest(p_batch.jobs_left, c_shares) else p_batch.jobs_left end;
    if v_free >= v_wanted then
      has_more := true;
      return;
    end if;
    v_rows := greatest(p_batch.jobs_left, 5);
    loop
      v_look := look_at_waiting(p_batch, cursor, v_level.lanes, v_level.kinds, p_last, v_rows, p_highest,
                                v_wanted - v_free, case when is_whole then proposals end);
      cursor := move_positions(cursor, v_level.lanes, case when v_look.is_all then p_last else v_look.last_seq end);
      met_again := met_again is not null; -- a second look may have met keys that were found before
      proposals := proposals || v_look.proposals;
      v_free := v_free + v_look.free;
      exit when v_look.is_all;
      if v_free >= v_wanted or clock_timestamp() > v_until then
        has_more := true;
        return;
      end if;
      v_rows := least(5 * v_rows, c_rows);
      -- The next look moves the positions over more rows of these keys, and leaves them out.
      for n in 1 .. coalesce(cardinality(proposals), 0) loop
        proposals[n].has_more := true;
      end loop;
    end loop;
  end loop;
end $$;

-- Looks at the next p_rows waiting rows of some lanes, but no further than to the p_wanted-th key whose turn is free. With
-- buckets, only keys of these count as wanted, and up to four times as many in all. p_found: keys to leave out.
create or replace function look_at_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_lanes int[], p_kinds text[], p_last bigint, p_rows int, p_highest bigint,
  p_wanted int, p_found key_proposal[],
  out proposals key_proposal[], out last_seq bigint, out free int, out is_all boolean
)
language plpgsql as $$
begin
  with line as materialized (
    select asked.lane, asked.kind, coalesce(known.seq, 0) as seq
    from unnest(p_lanes, p_kinds) as asked(lane, kind)
    left join unnest(p_cursor.lanes, p_cursor.seqs) as known(lane, seq) using (lane)
  ),
  waiting as materialized (
    select next.key, next.seq, next.tid, line.lane, line.kind
    from line
    cross join lateral (
      select ready.key, ready.seq, ready.ctid as tid from ready
      where ready.lane = -line.lane and ready.seq > line.seq and ready.seq <= p_last
      order by ready.seq limit p_rows
    ) as next
    order by next.seq limit p_rows
  ),
  of_key as materialized (
    select first.*, state.tid as state, turns, low, late, waits, listed, next_at,
           p_batch.buckets is null or kind = 'fair' or abs(first.key % 360) = any(p_batch.buckets) as is_own,
           coalesce(turns, 0) < max_turns(kind, p_batch.policy) and listed is not true as is_free
    from (
      select distinct on (waiting.key) *, lead(waiting.key) over (order by waiting.key, waiting.seq) = waiting.key as has_more
      from waiting
      where not exists (select from unnest(p_found) as found where found.key = waiting.key)
      order by waiting.key, waiting.seq
    ) as first
    left join lateral (
      select ctid as tid, key_state.turns, key_state.low, key_state.late, key_state.waits, key_state.listed,
             key_state.next_at
      from key_state where key_state.key = first.key order by version desc limit 1
    ) as state on true
  ),
  cut as (
    select least(
      (select of_key.seq from of_key where is_free and is_own order by of_key.seq offset p_wanted - 1 limit 1),
      (select of_key.seq from of_key where is_free order by of_key.seq offset 4 * p_wanted - 1 limit 1)) as seq
  )
  select array_agg(row(key, state, coalesce(turns, 0), coalesce(low, 0), late, coalesce(waits, false),
                       coalesce(listed, false), next_at, 0, 0, of_key.seq, of_key.seq - 1, null, case when is_free then tid end,
                       of_key.seq, lane, kind, of_key.seq, coalesce(has_more, false), false)::key_proposal)
           filter (where is_free or not waits or of_key.seq <= p_highest),
         coalesce(cut.seq, (select max(waiting.seq) from waiting)),
         case when count(*) filter (where is_free) >= 4 * p_wanted then p_wanted
              else count(*) filter (where is_free and is_own) end,
         cut.seq is null and (select count(*) from waiting) < p_rows
  into proposals, last_seq, free, is_all
  from cut left join of_key on of_key.seq <= coalesce(cut.seq, of_key.seq)
  group by cut.seq;
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
