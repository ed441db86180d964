-- dispatch: whose turn is it? Jobs with a key wait in `ready` under the negative number of their lane, in the order of
-- their seq, which is their place in the key. A *turn* is the right to work on a key. An ordered key has one turn, so its
-- jobs run one at a time and in order. A fair key has as many as its queue's concurrency says; without one, any number.
--
-- A turn is held by exactly one of: a row of `ready` or `scheduled` with a place, under a positive lane; a key's jobs in
-- one lease; a dead job that blocks its key. Or it has come back: then key and place stand in the queue's lane of
-- kind `returns`. key_state.turns counts all of these. A fair key has only one turn at a time that is not in a lease, so
-- that keys take turns with each other: the next is given out when that one was claimed.
--
-- Whoever claims from a queue with keys holds the queue's advisory lock until its transaction ends. It is the dispatcher:
-- nobody else writes key_state, key_cursor and key_policy, or gives out turns. All others only append: a new job, a job
-- that was put back, a turn that came back. So there is no lost wake-up and no lock for each key. The dispatcher waits
-- for nobody: it skips what is locked.
--
-- What the dispatcher reads:
--   1. Turns that came back. The key's next job is the first waiting row after the place.
--   2. Waiting rows that it has not read yet, best priority first and then oldest, until it has found enough keys whose
--      turn is free. Rows stay where they are; only the position up to which they were read moves (key_cursor). What was
--      read while its key's turn was out is found by 1.
--
-- Order is that of commits, as far as a client can tell. A transaction may take seq 100, stay open while rows after it are
-- read and claimed, and commit. Whoever enqueues after that commit comes later, so row 100 must be seen before that one:
--   3. A position only moves over rows up to a seq that was read before the list of open writers (`open_writers`). What
--      these commit later is looked for again, from where the positions stood when each was first seen.
--   4. The dispatcher looks for the next job of each key, and only then for writers that have ended since. What these left
--      is late: the dispatcher starts over with it. So a row that it has seen was not committed after one that it missed.

-- The queue's advisory lock. Claims of a queue with keys wait here for each other, for a short time.
create or replace function lock_keys(p_queue text) returns boolean
language plpgsql
set lock_timeout = '100ms'
as $$
declare
  v_lock bigint := hashtextextended(format('sluice.keys.%s.%s', current_schema(), p_queue), 0);
begin
  if pg_try_advisory_xact_lock(v_lock) then
    return true;
  end if;
  begin
    perform pg_advisory_xact_lock(v_lock);
    return true;
  exception
    when lock_not_available then
      return false;
  end;
end $$;

-- Finds up to p_batch.jobs_left jobs whose turn it is, and locks their rows. Their turns count as out from then on, so the
-- caller takes each job or puts it into its lane (list_granted).
create or replace function dispatch(
  p_batch claim_batch, p_types text[], p_run int, p_policy jsonb, p_cursor_seqs bigint[],
  out batch claim_batch, out granted granted_jobs, out has_more boolean
)
language plpgsql as $$
declare
  v_before    key_cursor%rowtype := newest_key_cursor(p_batch.queue);
  v_highest   bigint := coalesce((select max(seq) from unnest(v_before.seqs) as seq), 0); -- no turn's place is higher
  v_after     key_cursor%rowtype := v_before;
  v_policy    record := apply_key_policy(p_batch.queue, p_policy);
  v_returned  record;
  v_seq       bigint := coalesce(pg_sequence_last_value('ready_seq'), 0);
  v_open      text[] := open_writers(); -- after v_seq: see 3
  v_watched   text[] := v_before.writers;
  v_ended     text[];
  v_read      record;
  v_late_keys bigint[];
  v_late_seqs bigint[];
  v_proposals key_proposal[];
  v_followers key_proposal[];
begin
  batch := p_batch;
  batch.policy := v_policy.policy;
  v_returned := take_returned(p_batch.queue, p_cursor_seqs);
  v_returned := rest_turns(v_returned.keys, v_returned.places);
  if v_policy.is_wider then
    v_after.lanes := '{}'; -- all waiting rows are read again
    v_after.seqs := '{}';
  end if;
  v_read := read_waiting(batch, v_after, p_types, v_seq, v_highest);
  v_after := v_read.cursor;
  v_after.seq := v_seq;
  has_more := v_read.has_more;
  loop
    v_proposals := propose(v_returned.keys, v_returned.places, v_read.proposals, v_read.is_whole, v_late_keys, v_late_seqs,
                           v_after, batch.policy, p_types);
    v_followers := find_followers(v_proposals, batch, p_types, p_run);
    exit when v_watched = '{}';
    v_ended := array(select unnest(v_watched) except select unnest(open_writers())); -- see 4
    exit when v_ended = '{}';
    select v_late_keys || array_agg(late.key), v_late_seqs || array_agg(late.seq) into v_late_keys, v_late_seqs
    from late_rows(v_before, v_ended, v_highest) as late;
    v_watched := array(select unnest(v_watched) except select unnest(v_ended));
  end loop;
  if v_proposals is not null then
    granted := grant_turns(batch, v_proposals, v_followers);
  end if;
  batch.mark_seq := write_key_cursor(v_before, v_after, v_open, v_proposals is not null);
end $$;

create or replace function newest_key_cursor(p_queue text) returns key_cursor
language plpgsql as $$
declare
  v_cursor key_cursor%rowtype;
begin
  select * into v_cursor from key_cursor where queue = p_queue order by version desc limit 1;
  if not found then
    v_cursor := row(p_queue, null, 0, '{}', '{}', '{}', '{}', 0, 0, '-infinity')::key_cursor;
  end if;
  return v_cursor;
end $$;

-- Takes the queue's turns that have come back out of `ready`.
create or replace function take_returned(p_queue text, p_cursor_seqs bigint[], out keys bigint[], out places bigint[])
language plpgsql as $$
declare
  c_rows constant int := 100; -- of up to 100 turns each
  v_tids tid[];
begin
  v_tids := array(
    select event.tid
    from (select lane, coalesce(p_cursor_seqs[lane], 0) as low
          from lane where queue = p_queue and kind = 'returns' offset 0) as line
    cross join lateral (
      select ctid as tid from ready
      where ready.lane = line.lane and seq >= line.low
      order by seq limit c_rows for update skip locked
    ) as event);
  if v_tids <> '{}' then
    with removed as (
      delete from ready where ctid = any(v_tids) returning seq, returned, cardinality(returned) / 2 as turns
    )
    select array_agg(key order by seq, number), array_agg(place order by seq, number) into keys, places
    from removed
    cross join lateral unnest(returned[1 : turns], returned[turns + 1 : 2 * turns]) with ordinality
      as entry(key, place, number);
  end if;
end $$;

-- Turns that came back and that nobody waits for rest: they are free. Answers the others.
create or replace function rest_turns(p_keys bigint[], p_places bigint[], out keys bigint[], out places bigint[])
language plpgsql as $$
begin
  if p_keys is null then
    return;
  end if;
  with returned as materialized (
    select entry.key, count(*) filter (where entry.place >= 0) as turns, max(greatest(entry.place, 0)) as place, min(number) as number,
           array_agg(entry.place) as places
    from unnest(p_keys, p_places) with ordinality as entry(key, place, number)
    group by entry.key
  ),
  known as materialized (
    select returned.*, state.tid, state.waits or state.listed as waits
    from returned
    cross join lateral (
      select ctid as tid, key_state.waits, key_state.listed from key_state where key_state.key = returned.key order by version desc limit 1
    ) as state
  ),
  rested as (
    update key_state
    set turns = greatest(key_state.turns - known.turns, 0), low = greatest(low, known.place)
    from known
    where key_state.ctid = known.tid and not known.waits
  )
  select array_agg(known.key order by number), array_agg(place order by number) into keys, places
  from (select known.key, known.number, unnest(known.places) as place from known where waits) as known;
end $$;

-- Reads waiting rows after the positions of p_cursor and up to p_last, and moves the positions. It goes from the best
-- priority down and stops when it has found as many keys with a free turn as the claim wants. Answers these keys, and keys
-- with a row that may lie behind a turn that is out. `is_whole`: these were all lanes of the queue's keys, at one priority, so
-- that the first row of a key that was read is the first of all.
create or replace function read_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_types text[], p_last bigint, p_highest bigint,
  out cursor key_cursor, out proposals key_proposal[], out is_whole boolean, out has_more boolean
)
language plpgsql as $$
declare
  c_rows    constant int := 5000; -- the most of one look; the first takes as many as jobs are wanted
  c_shares  constant int := 1000; -- fair keys are looked for ahead, so that they take turns
  c_most_ms constant int := 100;  -- one look after the other, for this long
  v_until   timestamptz := clock_timestamp() + make_interval(secs => c_most_ms / 1000.0);
  v_wanted  int;
  v_free    int := 0;
  v_rows    int;
  v_looks   int := 0;
  v_level   record;
  v_look    record;
begin
  cursor := p_cursor;
  has_more := false;
  for v_level in
    select array_agg(lane) as lanes, array_agg(kind) as kinds
    from lane
    where queue = p_batch.queue and kind in ('ordered', 'fair') and type = any(p_types)
      and type <> all(array(select name from pause where pause.kind = 'type'))
    group by priority
    order by priority desc
  loop
    is_whole := is_whole is null and not exists (
      select from lane where queue = p_batch.queue and kind in ('ordered', 'fair') and lane <> all(v_level.lanes));
    v_wanted := case when 'fair' = any(v_level.kinds) then greatest(p_batch.jobs_left, c_shares) else p_batch.jobs_left end;
    if v_free >= v_wanted then
      has_more := true;
      return;
    end if;
    v_rows := greatest(p_batch.jobs_left, 20);
    loop
      v_look := look_at_waiting(p_batch, cursor, v_level.lanes, v_level.kinds, p_last, v_rows, p_highest,
                                v_wanted - v_free, case when is_whole then proposals end);
      cursor := move_positions(cursor, v_level.lanes, case when v_look.is_all then p_last else v_look.last_seq end);
      if v_looks > 0 then -- this look may have met keys that were found before
        for n in 1 .. coalesce(cardinality(proposals), 0) loop
          proposals[n].has_more := true;
        end loop;
      end if;
      v_looks := v_looks + 1;
      proposals := proposals || v_look.proposals;
      v_free := v_free + v_look.free;
      exit when v_look.is_all;
      if v_free >= v_wanted or clock_timestamp() > v_until then
        has_more := true;
        return;
      end if;
      v_rows := least(5 * v_rows, c_rows);
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
-- before, which does no harm.
create or replace function late_rows(p_cursor key_cursor, p_ended text[], p_highest bigint)
returns table (key bigint, seq bigint)
language plpgsql as $$
declare
  v_from bigint := (select min(from_seq) from unnest(p_cursor.writers, p_cursor.from_seqs) as open(writer, from_seq)
                    where writer = any(p_ended));
begin
  return query
    select late.key, min(late.seq)
    from (select lane from lane where queue = p_cursor.queue and kind in ('ordered', 'fair') offset 0) as line
    cross join lateral (
      select ready.key, ready.seq from ready
      where ready.lane = -line.lane and ready.seq > v_from and ready.seq <= p_highest
      offset 0
    ) as late
    group by late.key;
end $$;

-- The keys that have a returned turn or a row that was read, each with the job that is next if it can have a turn. Null:
-- there is no such key.
--
-- If all lanes of the queue's keys were read (p_is_whole), the next job of a key with a free turn is the first row that was
-- read: whatever was read before has had its turn. Not so for a key that also has a returned turn, or a row that was
-- committed late. A fair key has no order, so any row will do.
create or replace function propose(
  p_returned bigint[], p_places bigint[], p_read key_proposal[], p_is_whole boolean, p_late_keys bigint[],
  p_late_seqs bigint[], p_cursor key_cursor, p_policy key_policy, p_types text[]
) returns key_proposal[]
language plpgsql as $$
declare
  v_others    bigint[] := p_late_keys || p_returned;
  v_keys      bigint[];
  v_seqs      bigint[];
  v_proposals key_proposal[];
begin
  if (p_is_whole or p_read is null) and v_others is null then
    return p_read;
  end if;
  select array_agg(read.key), array_agg(read.first_seq) into v_keys, v_seqs
  from unnest(p_read) as read
  where not (p_is_whole or read.kind = 'fair') or exists (select from unnest(v_others) as other where other = read.key);
  if v_keys is not null or v_others is not null then
    v_proposals := look_up_next(p_returned, p_places, v_keys || p_late_keys, v_seqs || p_late_seqs, p_cursor, p_policy,
                                p_types);
  end if;
  return v_proposals || array(
    select read
    from (select distinct on ((read).key) read
          from (select read, row_number() over () as number from unnest(p_read) as read) as in_order
          where p_is_whole or (read).kind = 'fair'
          order by (read).key, number) as first
    where not exists (select from unnest(v_others) as other where other = (read).key));
end $$;

-- The next job of each key, by the index of keys. The look starts
--   after the last place that was worked: key_state.low, or the place that came back with a turn;
--   but not after a row that was committed late, or that was read late because nobody had asked for its type (first_seq).
-- A fair key passes over some rows of types that the claim did not ask for or that are paused: nobody may come for them. If
-- all are such rows, the next dispatch looks again.
create or replace function look_up_next(
  p_returned bigint[], p_places bigint[], p_keys bigint[], p_first_seqs bigint[], p_cursor key_cursor, p_policy key_policy,
  p_types text[]
) returns key_proposal[]
language plpgsql as $$
declare
  c_after     constant bigint := 4611686018427387904; -- fair keys that had a turn come after those that had none
  c_passed    constant int := 100;
  v_proposals key_proposal[];
begin
  with line as materialized (
    select lane, kind, coalesce(seq, 0) as seq,
           type = any(p_types) and type <> all(array(select name from pause where pause.kind = 'type')) as is_asked
    from lane left join unnest(p_cursor.lanes, p_cursor.seqs) as read(lane, seq) using (lane)
    where queue = p_cursor.queue and kind in ('ordered', 'fair')
  ),
  candidate as materialized (
    select key, sum(returned)::int as returned, coalesce(max(place), 0) as place, min(first_seq) as first_seq, min(n) as n
    from (
      select key, (place >= 0)::int as returned, greatest(place, 0) as place, null::bigint as first_seq, n
      from unnest(p_returned, p_places) with ordinality as entry(key, place, n)
      union all
      select key, 0, null, seq, null from unnest(p_keys, p_first_seqs) as read(key, seq)
    ) as events
    group by key
  ),
  known as materialized (
    select candidate.*, state.tid as state, coalesce(state.turns, 0) as turns, coalesce(state.low, 0) as low, state.late,
           coalesce(state.waits, false) as waits, coalesce(state.listed, false) as listed, state.next_at,
           least(state.late - 1, first_seq - 1, greatest(coalesce(state.low, 0), place)) as start
    from candidate
    left join lateral (
      select ctid as tid, key_state.turns, key_state.low, key_state.late, key_state.waits, key_state.listed,
             key_state.next_at
      from key_state where key_state.key = candidate.key order by version desc limit 1
    ) as state on true
  )
  select array_agg(row(known.key, state, turns, low, late, waits, listed, next_at, returned, place, first_seq, start, head.seq,
                       case when greatest(turns - returned, 0) < max_turns(next.kind, p_policy)
                             and (next.seq <= greatest(next.read_seq, first_seq) or has_read_row(known.key, next.seq, p_cursor))
                             and (next.kind = 'ordered'
                                  or next.is_asked and (not listed or (returned > 0 and not has_listed_job(known.key))))
                            then next.tid end,
                       next.seq, next.lane, next.kind,
                       case when next.kind = 'fair' and n is not null then c_after + n else next.seq end,
                       true, next.kind = 'fair' and not next.is_asked)::key_proposal)
  into v_proposals
  from known
  left join lateral (
    select first.*, line.kind, line.seq as read_seq, line.is_asked
    from (
      select ready.ctid as tid, ready.seq, -ready.lane as lane
      from ready
      where ready.key = known.key and ready.seq > known.start and ready.place is null
      order by ready.seq
      limit 1
    ) as first
    join line on line.lane = first.lane
  ) as head on true
  left join lateral (
    select asked.*, line.kind, line.seq as read_seq, line.is_asked
    from (
      select ready.ctid as tid, ready.seq, -ready.lane as lane
      from ready
      where ready.key = known.key and ready.seq > known.start and ready.place is null
      order by ready.seq
      limit c_passed
    ) as asked
    join line on line.lane = asked.lane and line.is_asked
    where head.kind = 'fair' and not head.is_asked
    order by asked.seq
    limit 1
  ) as other on true
  cross join lateral (
    select coalesce(other.tid, head.tid) as tid, coalesce(other.seq, head.seq) as seq, coalesce(other.lane, head.lane) as lane,
           head.kind, coalesce(other.read_seq, head.read_seq) as read_seq, other.is_asked or head.is_asked as is_asked
  ) as next;
  return v_proposals;
end $$;

-- A key's next row that was not read yet waits until it is, because what was read is older. But not if a row behind it was
-- read: that one would not be read again. It can happen only where a key has jobs in several lanes.
create or replace function has_read_row(p_key bigint, p_seq bigint, p_cursor key_cursor) returns boolean
language plpgsql as $$
declare
  c_rows constant int := 100;
begin
  return cardinality(p_cursor.lanes) > 1 and exists (
    select
    from (select -ready.lane as lane, ready.seq from ready
          where ready.key = p_key and ready.seq > p_seq and ready.place is null order by ready.seq limit c_rows) as behind
    join unnest(p_cursor.lanes, p_cursor.seqs) as read(lane, seq) on read.lane = behind.lane and behind.seq <= read.seq);
end $$;

-- The jobs that can follow in runs, if the claim has room for more than one job of each key: of an ordered key up to p_run
-- consecutive jobs, of a fair key as many as it may have at once. A run ends before a job of another lane and before an
-- isolated one. More keys come before longer runs.
create or replace function find_followers(
  p_proposals key_proposal[], p_batch claim_batch, p_types text[], p_run int
) returns key_proposal[]
language plpgsql as $$
declare
  v_keys int := (select count(*) from unnest(p_proposals) where tid is not null and (p_run > 1 or kind = 'fair'));
  v_room int := p_batch.jobs_left - v_keys;
begin
  if v_keys = 0 or v_room <= 0 then
    return null;
  end if;
  return (
    with head as materialized (
      select head.*, case when head.kind = 'ordered' then p_run
                          when (p_batch.policy).seconds_apart is not null then 1
                          else max_turns(head.kind, p_batch.policy) - greatest(turns - returned, 0) end as run
      from unnest(p_proposals) as head join lane using (lane)
      where head.tid is not null and lane.group_size = 0 and lane.type = any(p_types)
        and (head.kind = 'fair' or p_batch.buckets is null or abs(head.key % 360) = any(p_batch.buckets))
    ),
    next as (
      select head.key, head.rank, next.*,
             bool_and(next.lane = head.lane and next.abandonments = 0) over (partition by head.key order by next.seq) as fits,
             row_number() over (partition by head.key order by next.seq) as number
      from head
      cross join lateral (
        select ready.ctid as tid, ready.seq, -ready.lane as lane, abandonments
        from ready
        where ready.key = head.key and ready.seq > head.seq and ready.place is null
        order by ready.seq
        limit least(head.run - 1, greatest(2 * v_room / v_keys, 1))
      ) as next
      where head.run > 1
    )
    select array_agg(row(key, null, null, null, null, null, null, null, null, null, null, null, null, tid, seq, lane, null, number,
                         null, null)::key_proposal
                     order by number, rank)
    from (select * from next where fits order by number, rank limit v_room) as chosen
  );
end $$;

-- Locks the proposed rows and writes what the keys stand at then. A key whose next row is locked, because somebody cancels
-- it, gets no turn: nothing may pass that row until it is known how the cancel ends. So the turn goes back to the lane of
-- returned turns, and is looked at again by the next dispatch.
create or replace function grant_turns(p_batch claim_batch, p_proposals key_proposal[], p_followers key_proposal[])
returns granted_jobs
language plpgsql as $$
declare
  v_tids    tid[] := array(select tid from unnest(p_proposals) where tid is not null);
  v_locked  tid[] := array(
    select ctid from ready
    where ctid = any(v_tids || array(select tid from unnest(p_followers)))
    for update skip locked);
  v_stuck   bigint[] := '{}';
  v_heads   granted_jobs;
  v_others  granted_jobs;
begin
  if cardinality(v_locked) < cardinality(v_tids) + coalesce(cardinality(p_followers), 0) then
    v_stuck := array(select key from unnest(p_proposals) where tid is not null and tid <> all(v_locked));
    perform return_turns(p_batch.queue, array_agg(key), array_agg(start))
    from unnest(p_proposals) where key = any(v_stuck);
    p_followers := array(
      select follower
      from (select follower, bool_and(tid = any(v_locked)) over (partition by key order by seq) as fits
            from unnest(p_followers) as follower) as locked
      where fits and (follower).key <> all(v_stuck)
      order by (follower).rank);
  end if;
  perform return_turns(p_batch.queue, array_agg(key), array_agg(-1)) from unnest(p_proposals) where is_passed;
  perform write_key_states(p_proposals, v_stuck, array(select key from unnest(p_followers)));
  select array_agg(tid order by rank), array_agg(key order by rank), array_agg(lane order by rank), count(*)
  into v_heads
  from unnest(p_proposals) where tid is not null and key <> all(v_stuck);
  if (p_batch.policy).seconds_apart is not null and v_heads.heads > 0 then
    v_heads := pace_shares(v_heads, (p_batch.policy).seconds_apart);
  end if;
  if cardinality(p_followers) > 0 then
    select array_agg(tid), array_agg(key), array_agg(lane), null into v_others from unnest(p_followers);
    v_heads.tids := v_heads.tids || v_others.tids;
    v_heads.keys := v_heads.keys || v_others.keys;
    v_heads.lanes := v_heads.lanes || v_others.lanes;
  end if;
  return v_heads;
end $$;

-- Writes the keys that stand at something else now. `low` is the last place that was given out. While the turn goes from one
-- job to the next it is not written: the turn that comes back has the place. A fair key's jobs are given out in any order, so its
-- `low` lies before the first that waits. `late` stays while the turn
-- is out, because the row waits behind it; whoever gets the turn next starts from there. `waits` is true if rows were read that
-- got no turn, and for a key with followers: they may be put back.
create or replace function write_key_states(p_proposals key_proposal[], p_stuck bigint[], p_followed bigint[]) returns void
language plpgsql as $$
begin
  with judged as (
    select key, state, turns, low, late, waits, listed, turns_out + granted + stuck as new_turns,
           turns_out + stuck > 0 or (granted > 0 and (has_more or key = any(p_followed))) as new_waits,
           case when kind = 'fair' then coalesce(head_seq - 1, low)
                when granted > 0 then seq when turns_out = 0 then greatest(low, place) else low end as new_low,
           case when granted > 0 or (turns_out = 0 and stuck = 0) then null else least(late, first_seq) end as new_late,
           case when granted > 0 then kind = 'fair'
                when returned > 0 and listed then has_listed_job(key) else listed end as new_listed
    from (
      select *, greatest(turns - returned, 0) as turns_out, (key = any(p_stuck))::int as stuck,
             (tid is not null and key <> all(p_stuck))::int as granted
      from unnest(p_proposals)
    ) as proposal
  ),
  changed as materialized (
    select * from judged
    where new_turns <> turns or new_low < low or new_late is distinct from late or new_waits <> waits
       or new_listed <> listed
  ),
  updated as (
    update key_state
    set turns = new_turns, low = new_low, late = new_late, waits = new_waits, listed = new_listed
    from changed
    where key_state.ctid = changed.state
  )
  insert into key_state (key, turns, low, late, waits, listed)
  select key, new_turns, new_low, new_late, new_waits, new_listed from changed where state is null;
end $$;

-- Stores how far the dispatcher has read, and the writers whose rows it may have missed. A transaction that was prepared has
-- lost the name under which it was seen, so it counts from where the first of all began. Answers the seq up to which turns
-- are anybody's: each mark is kept for c_steal_after.
create or replace function write_key_cursor(
  p_before key_cursor, p_after key_cursor, p_open text[], p_is_changed boolean
) returns bigint
language plpgsql as $$
declare
  c_steal_after constant interval := interval '15 s';
  c_lag         constant int := 1000; -- rows
  v_is_marked   boolean := p_before.next_at not between clock_timestamp() - c_steal_after and clock_timestamp();
begin
  if not (p_is_changed or v_is_marked or p_after.seq - p_before.seq > c_lag) then
    return p_before.mark_seq;
  end if;
  if p_before.version is not null then
    delete from key_cursor where queue = p_before.queue and version = p_before.version;
  end if;
  insert into key_cursor (queue, seq, lanes, seqs, writers, from_seqs, mark_seq, next_seq, next_at)
  select p_after.queue, p_after.seq, p_after.lanes, p_after.seqs, coalesce(array_agg(writer), '{}'),
         coalesce(array_agg(from_seq), '{}'),
         case when v_is_marked then p_before.next_seq else p_before.mark_seq end,
         case when v_is_marked then p_after.seq else p_before.next_seq end,
         case when v_is_marked then clock_timestamp() else p_before.next_at end
  from (
    select writer, coalesce(
             (select from_seq from unnest(p_before.writers, p_before.from_seqs) as known(name, from_seq) where name = writer),
             case when writer like '-1/%' then (select min(from_seq) from unnest(p_before.from_seqs) as from_seq) end,
             p_before.seq) as from_seq
    from unnest(p_open) as writer
  ) as open;
  return case when v_is_marked then p_before.next_seq else p_before.mark_seq end;
end $$;

-- Jobs that have got their turn and are not taken now wait for it in their lanes, at a new place.
create or replace function list_granted(p_tids tid[]) returns void
language plpgsql as $$
begin
  update ready
  set lane = -listed.lane, place = listed.seq, seq = nextval('ready_seq')
  from (
    select ctid as tid, lane, seq from ready where ctid = any(p_tids) order by array_position(p_tids, ctid) offset 0
  ) as listed
  where ready.ctid = listed.tid;
end $$;
