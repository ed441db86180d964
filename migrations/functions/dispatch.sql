-- dispatch: whose turn is it? Jobs with a key wait in `ready` under the negative number of their lane, in the order of
-- their seq, which is their place in the key. A *turn* is the right to work on a key. An ordered key has one turn, so its
-- jobs run one at a time and in order. A fair key has as many as its queue's concurrency says.
--
-- A turn is held by exactly one of: a row of `ready` or `scheduled` with a place, under a positive lane; a key's jobs in
-- one lease; a dead job that blocks its key. Or it has come back: then a pair (key, place) stands in the queue's lane of
-- kind `returns`. key_state.turns counts all of these. A fair key without a cap has one turn, which comes back when its
-- job is claimed: so its jobs only take turns with those of other keys.
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
  v_after     key_cursor%rowtype;
  v_policy    record := apply_key_policy(p_batch.queue, p_policy);
  v_returned  bigint[] := v_policy.freed || take_returned(p_batch.queue, p_cursor_seqs);
  v_seq       bigint := coalesce(pg_sequence_last_value('ready_seq'), 0);
  v_open      text[] := open_writers(); -- after v_seq: see 3
  v_watched   text[] := v_before.writers;
  v_ended     text[];
  v_read      record;
  v_keys      bigint[];
  v_firsts    bigint[];
  v_proposals key_proposal[];
  v_followers key_proposal[];
begin
  batch := p_batch;
  batch.policy := v_policy.policy;
  v_after := v_before;
  if v_policy.is_wider then
    v_after.lanes := '{}'; -- all waiting rows are read again
    v_after.seqs := '{}';
  end if;
  v_read := read_waiting(batch, v_after, p_types, v_seq, v_highest);
  v_after := v_read.cursor;
  v_keys := v_read.keys;
  v_firsts := v_read.first_seqs;
  has_more := v_read.has_more;
  v_after.seq := v_seq;
  loop
    v_proposals := propose(v_returned, v_keys, v_firsts, v_after, batch.policy);
    v_followers := find_followers(v_proposals, batch, p_types, p_run);
    exit when v_watched = '{}';
    v_ended := array(select unnest(v_watched) except select unnest(open_writers())); -- see 4
    exit when v_ended = '{}';
    select v_keys || array_agg(late.key), v_firsts || array_agg(late.seq) into v_keys, v_firsts
    from late_rows(v_before, v_ended, v_highest) as late;
    v_watched := array(select unnest(v_watched) except select unnest(v_ended));
  end loop;
  if v_proposals is not null then
    granted := grant_turns(batch.queue, v_proposals, v_followers, batch.policy);
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

-- Takes the queue's turns that have come back out of `ready`: pairs of a key and a place.
create or replace function take_returned(p_queue text, p_cursor_seqs bigint[]) returns bigint[]
language plpgsql as $$
declare
  c_rows  constant int := 100; -- of up to 100 pairs each
  v_tids  tid[];
  v_pairs bigint[];
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
  if v_tids = '{}' then
    return '{}';
  end if;
  with removed as (
    delete from ready where ctid = any(v_tids) returning returned
  )
  select array_agg(pair) into v_pairs from removed cross join lateral unnest(returned) as pair;
  return v_pairs;
end $$;

-- Reads waiting rows after the positions of p_cursor and up to p_last, and moves the positions. It goes from the best
-- priority down and stops when it has found as many keys with a free turn as the claim wants. Answers these keys, and the
-- keys with a row that may lie behind a turn that is out (see propose).
create or replace function read_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_types text[], p_last bigint, p_highest bigint,
  out cursor key_cursor, out keys bigint[], out first_seqs bigint[], out has_more boolean
)
language plpgsql as $$
declare
  c_rows    constant int := 5000; -- of a look that goes on after the first
  c_most_ms constant int := 100;  -- one look after the other, for this long
  v_until   timestamptz := clock_timestamp() + make_interval(secs => c_most_ms / 1000.0);
  v_free    int := 0;
  v_rows    int;
  v_level   record;
  v_look    record;
begin
  cursor := p_cursor;
  has_more := false;
  for v_level in
    select array_agg(lane) as lanes
    from lane
    where queue = p_batch.queue and kind in ('ordered', 'fair') and type = any(p_types)
      and type <> all(array(select name from pause where pause.kind = 'type'))
    group by priority
    order by priority desc
  loop
    v_rows := 2 * greatest(p_batch.jobs_left, 20);
    loop
      exit when v_free >= p_batch.jobs_left;
      v_look := look_at_waiting(p_batch, cursor, v_level.lanes, p_last, v_rows, p_highest, p_batch.jobs_left - v_free);
      cursor := move_positions(cursor, v_level.lanes, case when v_look.is_all then p_last else v_look.last_seq end);
      keys := keys || v_look.keys;
      first_seqs := first_seqs || v_look.first_seqs;
      v_free := v_free + v_look.free;
      exit when v_look.is_all;
      if clock_timestamp() > v_until then
        v_free := p_batch.jobs_left;
      end if;
      v_rows := c_rows;
    end loop;
    has_more := has_more or not coalesce(v_look.is_all, false);
    exit when v_free >= p_batch.jobs_left;
  end loop;
end $$;

-- Looks at the next p_rows waiting rows of some lanes, but no further than to the p_wanted-th key whose turn is free. With
-- buckets, only keys of these count as wanted, and up to four times as many in all.
create or replace function look_at_waiting(
  p_batch claim_batch, p_cursor key_cursor, p_lanes int[], p_last bigint, p_rows int, p_highest bigint, p_wanted int,
  out keys bigint[], out first_seqs bigint[], out last_seq bigint, out free int, out is_all boolean
)
language plpgsql as $$
begin
  with line as materialized (
    select lane.lane, lane.kind, coalesce(known.seq, 0) as seq
    from unnest(p_lanes) as asked(lane)
    join lane on lane.lane = asked.lane
    left join unnest(p_cursor.lanes, p_cursor.seqs) as known(lane, seq) on known.lane = asked.lane
  ),
  waiting as materialized (
    select next.key, next.seq, line.kind
    from line
    cross join lateral (
      select ready.key, ready.seq from ready
      where ready.lane = -line.lane and ready.seq > line.seq and ready.seq <= p_last
      order by ready.seq limit p_rows
    ) as next
    order by next.seq limit p_rows
  ),
  of_key as materialized (
    select of_key.*, p_batch.buckets is null or of_key.kind = 'fair' or abs(of_key.key % 360) = any(p_batch.buckets) as is_own,
           coalesce(state.turns, 0) < case when of_key.kind = 'fair' then coalesce((p_batch.policy).concurrency, 1) else 1 end
             as is_free
    from (select waiting.key, min(waiting.kind) as kind, min(waiting.seq) as seq from waiting group by waiting.key) as of_key
    left join lateral (
      select turns from key_state where key_state.key = of_key.key order by version desc limit 1
    ) as state on true
  ),
  cut as (
    select least(
      (select of_key.seq from of_key where is_free and is_own order by of_key.seq offset p_wanted - 1 limit 1),
      (select of_key.seq from of_key where is_free order by of_key.seq offset 4 * p_wanted - 1 limit 1)) as seq
  )
  select array_agg(of_key.key order by of_key.seq) filter (where is_free or of_key.seq <= p_highest),
         array_agg(of_key.seq order by of_key.seq) filter (where is_free or of_key.seq <= p_highest),
         coalesce(cut.seq, (select max(waiting.seq) from waiting)),
         case when count(*) filter (where is_free) >= 4 * p_wanted then p_wanted
              else count(*) filter (where is_free and is_own) end,
         cut.seq is null and (select count(*) from waiting) < p_rows
  into keys, first_seqs, last_seq, free, is_all
  from cut left join of_key on of_key.seq <= coalesce(cut.seq, of_key.seq)
  group by cut.seq;
end $$;

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

-- What writers that have ended left up to the positions: the first such row of each key. It also finds rows that were read
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

-- For each key that has a returned turn or a row that was read: what is known of it, and the jobs that are next, as many as
-- it has free turns. Null: there is no such key. The look for a key's next jobs starts
--   after the last place that was worked: key_state.low, or the place that came back with the turn;
--   but not after a row that was committed late, or that was read late because nobody had asked for its type (first_seq).
create or replace function propose(
  p_returned bigint[], p_keys bigint[], p_first_seqs bigint[], p_cursor key_cursor, p_policy key_policy
) returns key_proposal[]
language plpgsql as $$
declare
  v_proposals key_proposal[];
begin
  if cardinality(p_returned) = 0 and p_keys is null then
    return null;
  end if;
  with candidate as materialized (
    select key, sum(returned)::int as returned, coalesce(max(place), 0) as place, min(first_seq) as first_seq
    from (
      select p_returned[n] as key, (p_returned[n + 1] >= 0)::int as returned, abs(p_returned[n + 1]) as place,
             null::bigint as first_seq
      from generate_series(1, cardinality(p_returned), 2) as n
      union all
      select key, 0, null, seq from unnest(p_keys, p_first_seqs) as read(key, seq)
    ) as events
    group by key
  ),
  known as materialized (
    select candidate.*, state.tid as state, coalesce(state.turns, 0) as turns, coalesce(state.low, 0) as low, state.late,
           state.next_at, greatest(coalesce(state.turns, 0) - returned, 0) as turns_out,
           least(state.late - 1, first_seq - 1, greatest(coalesce(state.low, 0), place)) as start
    from candidate
    left join lateral (
      select ctid as tid, key_state.turns, key_state.low, key_state.late, key_state.next_at
      from key_state where key_state.key = candidate.key order by version desc limit 1
    ) as state on true
  )
  select array_agg(row(known.key, state, turns, low, late, next_at, returned, place, first_seq, start, number, tid,
                       waiting.seq, waiting.lane)::key_proposal)
  into v_proposals
  from known
  left join lateral (
    select next.*, row_number() over (order by next.seq)::int as number, lane.kind
    from (
      select ready.ctid as tid, ready.seq, -ready.lane as lane
      from ready
      where ready.key = known.key and ready.seq > known.start and ready.place is null
      order by ready.seq
      limit greatest(coalesce(p_policy.concurrency, 1) - turns_out, 0)
    ) as next join lane on lane.lane = next.lane
  ) as waiting
    -- A row that was not read yet waits until it is: what was read is older.
    on waiting.seq <= (select seq from unnest(p_cursor.lanes, p_cursor.seqs) as read(lane, seq) where read.lane = waiting.lane)
    and case when waiting.kind = 'ordered' then number = 1 and turns_out = 0
             when p_policy.seconds_apart is not null then number = 1 and may_start(known.key, next_at, turns_out, returned)
             else true end;
  return v_proposals;
end $$;

-- The jobs that can follow in one run, if the claim has room for more than one job of each key: for an ordered key up to
-- p_run consecutive jobs, for a fair key without a cap as many as there is room. A run ends before a job of another lane
-- and before an isolated one. More keys come before longer runs.
create or replace function find_followers(
  p_proposals key_proposal[], p_batch claim_batch, p_types text[], p_run int
) returns key_proposal[]
language plpgsql as $$
declare
  v_keys int := (select count(*) from unnest(p_proposals) where tid is not null);
  v_room int := p_batch.jobs_left - v_keys;
begin
  if v_keys = 0 or v_room <= 0 then
    return null;
  end if;
  return (
    with head as materialized (
      select head.*, case when kind = 'ordered' then p_run
                          when (p_batch.policy).concurrency is null and (p_batch.policy).seconds_apart is null then v_room + 1
                          else 1 end as run
      from unnest(p_proposals) as head join lane using (lane)
      where head.tid is not null and lane.group_size = 0 and lane.type = any(p_types)
        and (lane.kind = 'fair' or p_batch.buckets is null or abs(head.key % 360) = any(p_batch.buckets))
    ),
    next as (
      select head.key, next.*, bool_and(next.lane = head.lane and next.abandonments = 0)
               over (partition by head.key order by next.seq) as fits
      from head
      cross join lateral (
        select ready.ctid as tid, ready.seq, -ready.lane as lane, abandonments,
               row_number() over (order by ready.seq)::int as number
        from ready
        where ready.key = head.key and ready.seq > head.seq and ready.place is null
        order by ready.seq
        limit least(head.run - 1, greatest(2 * v_room / v_keys, 1))
      ) as next
      where head.run > 1
    )
    select array_agg(row(chosen.key, null, null, null, null, null, null, null, null, null, number, tid, seq, lane)::key_proposal)
    from (select * from next where fits order by number, seq limit v_room) as chosen
  );
end $$;

-- Locks the proposed rows and writes what the keys stand at then. A key whose next row is locked, because somebody cancels
-- it, gets no turn: nothing may pass that row until it is known how the cancel ends. So the turn goes back to the lane of
-- returned turns, and is looked at again by the next dispatch.
create or replace function grant_turns(
  p_queue text, p_proposals key_proposal[], p_followers key_proposal[], p_policy key_policy
) returns granted_jobs
language plpgsql as $$
declare
  v_locked  tid[] := array(
    select ctid from ready
    where ctid = any(array(select tid from unnest(p_proposals || p_followers) where tid is not null))
    for update skip locked);
  v_stuck   bigint[] := array(select key from unnest(p_proposals) where tid is not null and tid <> all(v_locked));
  v_granted granted_jobs;
begin
  if v_stuck <> '{}' then
    perform return_turns(p_queue, array(
      select pair from unnest(p_proposals) as stuck cross join lateral unnest(array[stuck.key, stuck.start]) as pair
      where stuck.key = any(v_stuck) and number = 1));
  end if;
  perform write_key_states(p_proposals, v_stuck);
  select array_agg(tid), array_agg(key), array_agg(seq), array_agg(lane), array_agg(is_head)
  into v_granted
  from (
    select tid, key, seq, lane, true as is_head from unnest(p_proposals)
    where tid is not null and key <> all(v_stuck)
    union all
    select tid, key, seq, lane, false
    from (
      select *, bool_and(tid = any(v_locked)) over (partition by key order by seq) as fits from unnest(p_followers)
    ) as follower
    where fits and key <> all(v_stuck)
  ) as granted;
  if p_policy.seconds_apart is not null then
    v_granted := pace_shares(v_granted, p_policy.seconds_apart);
  end if;
  return v_granted;
end $$;

-- Writes the keys whose turns have changed. `low` is the last place that was given out. `late` stays while the turn is out,
-- because the row waits behind it; whoever gets the turn next starts from there.
create or replace function write_key_states(p_proposals key_proposal[], p_stuck bigint[]) returns void
language plpgsql as $$
begin
  with of_key as (
    select key, min(state) as state, min(turns) as turns, min(low) as low, min(late) as late, min(next_at) as next_at,
           greatest(min(turns) - min(returned), 0) as turns_out, min(returned) as returned, min(place) as place,
           min(first_seq) as first_seq, case when key = any(p_stuck) then 0 else count(tid) end as granted,
           max(seq) as last_seq, (key = any(p_stuck))::int as stuck
    from unnest(p_proposals)
    group by key
  ),
  changed as (
    select key, state, turns, (turns_out + granted + stuck)::int as new_turns, late, next_at,
           case when granted > 0 then last_seq when turns_out = 0 then greatest(low, place) else low end as new_low,
           case when granted > 0 or (turns_out = 0 and stuck = 0) then null else least(late, first_seq) end as new_late
    from of_key
  ),
  written as materialized (
    select * from changed
    where new_turns <> turns or new_late is distinct from late
  ),
  outdated as (
    delete from key_state where ctid = any(array(select state from written where state is not null))
  )
  insert into key_state (key, turns, low, late, next_at)
  select key, new_turns, new_low, new_late, next_at from written;
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

-- Jobs that were granted a turn and are not taken now wait for it in their lanes, at a new place.
create or replace function list_granted(p_granted granted_jobs) returns void
language plpgsql as $$
begin
  update ready
  set lane = -ready.lane, place = ready.seq, seq = nextval('ready_seq')
  where ctid = any(array(
    select tid from unnest(p_granted.tids, p_granted.places, p_granted.heads) as granted(tid, place, is_head)
    where is_head order by place));
end $$;
