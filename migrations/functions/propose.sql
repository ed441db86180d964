-- propose: the part of the dispatcher (dispatch.sql) that finds out which job of each key is next.

-- Takes the queue's turns that have come back out of `ready`, and those of grants that have ended. Turns that nobody waits for
-- rest: they are free. Answers the others, in the order in which they came back. Of those that were part of a grant, `seqs` says
-- from where on jobs wait; their place is -1.
--
-- p_are_enough: as many turns are enough as the claim wants jobs. Otherwise it takes all. What is left (are_left) counts as out, and is
-- taken by the next dispatches.
create or replace function take_returned(
  p_cursor key_cursor, p_cursor_seqs bigint[], p_batch claim_batch, p_are_enough boolean,
  out keys bigint[], out places bigint[], out starts bigint[], out waited bigint[], out seqs bigint[], out are_left boolean,
  out some_old boolean
)
language plpgsql as $$
declare
  v_wanted  int := case when p_are_enough then p_batch.jobs_left end;
  v_rows    record := rows_of_turns(p_cursor, p_cursor_seqs, p_batch, v_wanted);
  v_ended   bigint[] := p_batch.ended_grants;
  v_removed bigint[]; -- rows of ended grants
  v_apart   apart_key[];
  v_more    record;
begin
  are_left := v_rows.are_left;
  some_old := v_rows.some_old;
  if v_rows.are_enough and v_ended is not null then -- these come after what has come back before
    perform return_grant(p_cursor.queue, grant_id, null) from unnest(v_ended) as grant_id;
    v_ended := null;
    are_left := true;
  end if;
  if v_rows.tids is not null then
    with removed as (
      delete from ready where ctid = any(v_rows.tids)
      returning seq, place as grant_id, returned, cardinality(returned) / 2 as turns
    )
    select array_agg(entry.key order by seq, number), array_agg(entry.place order by seq, number),
           (select array_agg(grant_id) from removed where grant_id is not null),
           (select array_agg(row(grant_id, apart)::apart_key) from removed cross join lateral unnest(returned) as apart
            where grant_id is not null)
    into keys, places, v_removed, v_apart
    from removed
    cross join lateral unnest(returned[1 : turns], returned[turns + 1 : 2 * turns]) with ordinality as entry(key, place, number)
    where grant_id is null;
    if cardinality(keys) > v_wanted then
      perform return_turns(p_cursor.queue, keys[v_wanted + 1 :], places[v_wanted + 1 :]);
      keys := keys[1 : v_wanted];
      places := places[1 : v_wanted];
      are_left := true;
    end if;
  end if;
  if keys is not null then
    v_more := leave_grants(p_cursor.grants, keys, places);
    waited := v_more.waited;
    seqs := v_more.seqs;
    select * into keys, places, starts from rest_turns(keys, places, v_more.left_keys);
  end if;
  v_ended := v_ended || v_removed;
  if v_ended is not null then
    v_more := end_grants(v_ended, v_apart);
    waited := waited || v_more.waited;
    seqs := seqs || v_more.seqs;
  end if;
  if waited is not null then
    keys := keys || waited;
    places := places || array_fill(-1::bigint, array[cardinality(waited)]);
    starts := starts || array_fill(null::bigint, array[cardinality(waited)]);
  end if;
end $$;

-- The rows of turns that came back, oldest first, as many as have p_wanted turns; null: all. With buckets, rows of turns in these and
-- old ones come first (some_old: of other buckets). If they are too few, the others follow, if it is known whose they are (owners).
-- The first key of a row tells: the turns of one lease come back together, and most often they are in one worker's buckets.
create or replace function rows_of_turns(
  p_cursor key_cursor, p_cursor_seqs bigint[], p_batch claim_batch, p_wanted int,
  out tids tid[], out are_enough boolean, out are_left boolean, out some_old boolean
)
language plpgsql as $$
declare
  c_rows    constant int := 100; -- of up to 100 turns each
  v_buckets int[] := case when p_wanted is not null then p_batch.buckets end;
  v_own     boolean;
  v_rows    record;
  v_found   int := 0;
begin
  are_left := false;
  foreach v_own in array case when v_buckets is null or p_batch.owners is null then array[true] else array[true, false] end loop
    select array_agg(tid) as tids, array_agg(turns) as turns, bool_or(is_old and not is_own) as some_old into v_rows
    from (select lane, coalesce(p_cursor_seqs[lane], 0) as low
          from lane where queue = p_cursor.queue and kind = 'returns' offset 0) as line
    cross join lateral (
      select tid, turns, is_old, is_own
      from (
        select ctid as tid, seq, seq <= p_cursor.mark_seq as is_old,
               v_buckets is null or bucket_of_turns(place, returned) = any(v_buckets) as is_own,
               case when place is null then cardinality(returned) / 2
                    else (select cardinality(waited) from turn_grant where id = place) end as turns
        from ready
        where ready.lane = line.lane and seq >= line.low
          and (v_buckets is null or (seq <= p_cursor.mark_seq or bucket_of_turns(place, returned) = any(v_buckets)) = v_own)
        order by seq limit c_rows for update skip locked
      ) as row
    ) as event;
    some_old := coalesce(some_old, false) or coalesce(v_rows.some_old, false);
    for n in 1 .. case when p_wanted is null then 0 else coalesce(cardinality(v_rows.tids), 0) end loop
      if v_found >= p_wanted then
        v_rows.tids := v_rows.tids[1 : n - 1];
        are_left := true;
        exit;
      end if;
      v_found := v_found + coalesce(v_rows.turns[n], 0);
    end loop;
    tids := tids || v_rows.tids;
    exit when v_found >= p_wanted;
  end loop;
  are_enough := v_found >= p_wanted;
end $$;

create or replace function bucket_of_turns(p_grant_id bigint, p_returned bigint[]) returns int
language plpgsql as $$
begin
  return abs(case when p_grant_id is null then p_returned[1] else (select keys[1] from turn_grant where id = p_grant_id) end % 360);
end $$;

-- Turns that came back and that nobody waits for are free. Answers the others. p_except: they were part of grants.
-- `starts`: after which seq the key's next job waits, if the key's state is such that the turn goes to that job and nothing has to be
-- written (next_of_keys). Otherwise null.
create or replace function rest_turns(
  p_keys bigint[], p_places bigint[], p_except bigint[], out keys bigint[], out places bigint[], out starts bigint[]
)
language plpgsql as $$
begin
  with known as materialized (
    select entry.*, state.tid, state.waits or state.listed as waits,
           case when entry.turns = 1 and state.turns = 1 and state.waits and not state.listed and late is null
                then greatest(low, place) end as start
    from (
      select key, count(*) filter (where place >= 0) as turns, max(greatest(place, 0)) as place
      from unnest(p_keys, p_places) as entry(key, place)
      where key <> all(p_except)
      group by key
    ) as entry
    cross join lateral (
      select ctid as tid, key_state.turns, key_state.low, key_state.late, key_state.waits, key_state.listed
      from key_state where key_state.key = entry.key order by version desc limit 1
    ) as state
  ),
  rested as (
    update key_state
    set turns = greatest(key_state.turns - known.turns, 0), low = greatest(low, known.place)
    from known
    where key_state.ctid = known.tid and not known.waits
  )
  select array_agg(key order by number), array_agg(entry.place order by number), array_agg(start order by number)
  into keys, places, starts
  from unnest(p_keys, p_places) with ordinality as entry(key, place, number)
  join known using (key)
  where waits;
end $$;

-- As most often where jobs wait behind keys: a turn that came back goes to the next job of its key (p_starts, see rest_turns), which was
-- read before and is of a lane that the claim takes straight. Answers such jobs, and the keys and places that have to be looked up.
-- p_except: keys of which rows were read as well, or whose turn is part of a grant. p_straight: null where the turns are going to be
-- part of grants, or where priorities differ.
create or replace function next_of_keys(
  p_keys bigint[], p_places bigint[], p_starts bigint[], p_except bigint[], p_cursor key_cursor, p_straight int[],
  out granted granted_jobs, out keys bigint[], out places bigint[]
)
language plpgsql as $$
begin
  keys := p_keys;
  places := p_places;
  if p_keys is null or p_straight is null then
    return;
  end if;
  select array_agg(tid order by seq), array_agg(key order by seq), array_agg(lane order by seq), count(*),
         array_agg(seq order by seq), array_agg(0)
  into granted.tids, granted.keys, granted.lanes, granted.heads, granted.seqs, granted.turns
  from (
    select returned.key, next.*
    from unnest(p_keys, p_starts) as returned(key, start)
    cross join lateral (
      select ready.ctid as tid, ready.seq, -ready.lane as lane from ready
      where ready.key = returned.key and ready.seq > returned.start and ready.place is null
      order by ready.seq limit 1
    ) as next
    where returned.key <> all(p_except)
  ) as next
  where lane = any(p_straight) and seq <= p_cursor.seqs[array_position(p_cursor.lanes, lane)];
  if granted.heads > 0 then
    select array_agg(key), array_agg(place) into keys, places
    from unnest(p_keys, p_places) as returned(key, place) where key <> all(granted.keys);
  end if;
end $$;

-- Keys that have a returned turn, or rows that were read or are late, each with the job that is next if it can have a turn. Null: none.
create or replace function propose(
  p_returned bigint[], p_places bigint[], p_keys bigint[], p_first_seqs bigint[], p_cursor key_cursor, p_policy key_policy,
  p_types text[], p_held bigint[]
) returns key_proposal[]
language plpgsql as $$
begin
  if p_returned is null and p_keys is null then
    return null;
  end if;
  return look_up_next(look_up_keys(p_returned, p_places, p_keys, p_first_seqs, p_held), p_cursor, p_policy, p_types);
end $$;

-- What is known of each key, and where to look for its next job:
--   after the last place that was worked: key_state.low, or the place that came back with a turn;
--   but not after a row that was committed late, or that was read late because nobody had asked for its type (first_seq).
create or replace function look_up_keys(
  p_returned bigint[], p_places bigint[], p_keys bigint[], p_first_seqs bigint[], p_held bigint[]
) returns key_proposal[]
language plpgsql as $$
declare
  c_after constant bigint := 4611686018427387904; -- fair keys that had a turn come after those that had none
  v_known key_proposal[];
begin
  with candidate as materialized (
    select key, sum(returned)::int as returned, coalesce(max(place), 0) as place, min(first_seq) as first_seq, min(n) as n
    from (
      select key, (place >= 0)::int as returned, greatest(place, 0) as place, null::bigint as first_seq, n
      from unnest(p_returned, p_places) with ordinality as entry(key, place, n)
      union all
      select key, 0, null, seq, null from unnest(p_keys, p_first_seqs) as read(key, seq)
    ) as events
    group by key
  )
  select array_agg(row(candidate.key, state.tid, coalesce(turns, 0), coalesce(low, 0), late, coalesce(waits, false),
                       coalesce(listed, false), returned, place, first_seq,
                       least(late - 1, first_seq - 1, greatest(coalesce(low, 0), case when listed then 0 else place end)),
                       null, null, null, null, null, c_after + n, false,
                       candidate.key in (select unnest(p_held)))::key_proposal)
  into v_known
  from candidate
  left join lateral (
    select ctid as tid, key_state.turns, key_state.low, key_state.late, key_state.waits, key_state.listed
    from key_state where key_state.key = candidate.key order by version desc limit 1
  ) as state on true;
  return v_known;
end $$;

-- Adds the next job of each key, by the index of keys. A fair key passes over some rows of types that the claim did not ask
-- for or that are paused: nobody may come for them. If all are such rows, the next dispatch looks again.
create or replace function look_up_next(
  p_known key_proposal[], p_cursor key_cursor, p_policy key_policy, p_types text[]
) returns key_proposal[]
language plpgsql as $$
declare
  c_passed    constant int := 100;
  v_proposals key_proposal[];
begin
  with line as materialized (
    select lane, kind, coalesce(seq, 0) as read_seq,
           type = any(p_types) and type <> all(array(select name from pause where pause.kind = 'type')) as is_asked
    from lane left join unnest(p_cursor.lanes, p_cursor.seqs) as read(lane, seq) using (lane)
    where queue = p_cursor.queue and kind in ('ordered', 'fair')
  )
  select array_agg(row(known.key, state, turns, low, late, waits, listed, returned, place, first_seq, start, head.seq,
                       case when not is_held and greatest(turns - returned, 0) < max_turns(head.kind, p_policy)
                             and (next.seq <= greatest(next.read_seq, first_seq) or has_read_row(known.key, next.seq, p_cursor))
                             and (head.kind = 'ordered' or next.is_asked and (not listed or known.place = 1))
                            then next.tid end,
                       next.seq, next.lane, head.kind,
                       case when head.kind = 'fair' then coalesce(known.rank, next.seq) else next.seq end,
                       head.kind = 'fair' and not next.is_asked, is_held)::key_proposal)
  into v_proposals
  from unnest(p_known) as known
  left join lateral (
    select first.*, line.kind, line.read_seq, line.is_asked
    from (select ready.ctid as tid, ready.seq, -ready.lane as lane from ready
          where ready.key = known.key and ready.seq > known.start and ready.place is null
          order by ready.seq limit 1) as first
    join line using (lane)
  ) as head on true
  left join lateral (
    select asked.*, line.read_seq, line.is_asked
    from (select ready.ctid as tid, ready.seq, -ready.lane as lane from ready
          where ready.key = known.key and ready.seq > known.start and ready.place is null
          order by ready.seq limit c_passed) as asked
    join line using (lane)
    where head.kind = 'fair' and not head.is_asked and line.is_asked
    order by asked.seq limit 1
  ) as other on true
  cross join lateral (
    select coalesce(other.tid, head.tid) as tid, coalesce(other.seq, head.seq) as seq, coalesce(other.lane, head.lane) as lane,
           coalesce(other.read_seq, head.read_seq) as read_seq, coalesce(other.is_asked, head.is_asked) as is_asked
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
  p_granted granted_jobs, p_proposals key_proposal[], p_batch claim_batch, p_types text[], p_run int
) returns key_proposal[]
language plpgsql as $$
declare
  v_heads int := coalesce(p_granted.heads, 0);
  v_room  int;
begin
  if p_proposals is not null then
    v_heads := v_heads + (select count(*) from unnest(p_proposals) where tid is not null);
  end if;
  v_room := p_batch.jobs_left - v_heads;
  if v_heads = 0 or v_room <= 0 then
    return null;
  end if;
  return (
    with head as materialized (
      select head.*, case when lane.kind = 'ordered' then p_run
                          when (p_batch.policy).seconds_apart is not null then 1
                          else max_turns(lane.kind, p_batch.policy) - turns_out end as run
      from (
        select key, lane, seq, seq as rank, turns as turns_out
        from unnest(p_granted.keys, p_granted.lanes, p_granted.seqs, p_granted.turns) as first(key, lane, seq, turns)
        union all
        select key, lane, seq, rank, greatest(turns - returned, 0) from unnest(p_proposals) where tid is not null
      ) as head
      join lane using (lane)
      where lane.group_size = 0 and lane.type = any(p_types)
        and (lane.kind = 'fair' or p_batch.buckets is null or abs(head.key % 360) = any(p_batch.buckets))
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
        limit least(head.run - 1, greatest(2 * v_room / v_heads, 1))
      ) as next
      where head.run > 1
    )
    select array_agg(row(key, null, null, null, null, null, null, null, null, null, null, null, tid, seq, lane, null, number,
                         null, null)::key_proposal
                     order by number, rank)
    from (select * from next where fits order by number, rank limit v_room) as chosen
  );
end $$;
