-- turn grants: turns that one claim gave out together. A claim of many jobs, each of another partition key, would write each
-- key's state when it gives out the turn and again when it comes back. Most such jobs are completed together, and nobody waits
-- behind them. So the keys stand in one row, the *grant*, and their states are not written. The lease names its grant. When the
-- lease ends, the grant ends and all its turns are free. Only the dispatcher (dispatch.sql) writes grants.
--
-- A key may leave its lease before the others: its job was settled alone, or did not complete, or was extended alone. Then it is
-- *apart*: its turn comes back by itself, or a job keeps it. The lease lists such keys, and tells them at its end (return_grant).
-- So whichever the dispatcher reads first, the key's own event or the end of its grant, the turn counts once:
--   the own event first    the key leaves the grant (leave_grants)
--   the end first          the turn counts by itself from now on (count_apart), until the own event comes
--
-- A dispatch reads all open grants of its queue. So there are few (open_grants); other claims count turns one by one.

-- The grants that are open, the keys whose turns are part of them, and whether there may be more.
create or replace function open_grants(p_grants bigint[], out ids bigint[], out keys bigint[], out may_grow boolean)
language plpgsql as $$
declare
  c_grants constant int := 100;
  c_keys   constant int := 8000;
  v_grant  record;
begin
  ids := '{}';
  keys := '{}';
  if p_grants <> '{}' then
    for v_grant in select turn_grant.id, turn_grant.keys from turn_grant where id = any(p_grants) loop
      ids := ids || v_grant.id;
      keys := keys || v_grant.keys;
    end loop;
  end if;
  may_grow := cardinality(ids) < c_grants and cardinality(keys) < c_keys;
end $$;

-- The grants of jobs that have just got their turn. One of which no job is taken will not be found by the next dispatch.
create or replace function new_grants(p_batch claim_batch, p_granted granted_jobs) returns bigint[]
language plpgsql as $$
declare
  v_lane   int;
  v_grants bigint[] := '{}';
begin
  foreach v_lane in array p_batch.granting loop
    if v_lane = any(p_granted.lanes) then
      v_grants := v_grants || p_batch.grant_base + v_lane;
    end if;
  end loop;
  return v_grants;
end $$;

-- Writes the grants of the leases that the claim is going to write. If some jobs were not taken (p_are_left), their keys' turns
-- count by themselves: a job in its lane holds them, or a dead one, or they have come back.
create or replace function store_grants(p_batch claim_batch, p_granted granted_jobs, p_are_left boolean) returns void
language plpgsql as $$
declare
  v_taken taken_jobs;
  v_left  bigint[] := '{}';
begin
  if p_batch.waited && (p_granted.locked).keys is not true and not p_are_left and (p_granted.locked).keys is not null
     and p_granted.lanes[1] = all(p_granted.lanes) then -- as most often: one job of each key, in one lane
    insert into turn_grant (id, keys, places, waited, starts)
    values (p_batch.grant_base + p_granted.lanes[1], (p_granted.locked).keys, (p_granted.locked).places, '{}', '{}');
    return;
  end if;
  if p_are_left then
    v_left := array(
      select key from unnest(p_granted.keys[1 : p_granted.heads], p_granted.lanes[1 : p_granted.heads]) as entry(key, lane)
      where lane = any(p_batch.granting));
  end if;
  foreach v_taken in array coalesce(p_batch.taken, '{}') loop
    continue when v_taken.grant_id is null or v_taken.grant_id < p_batch.grant_base;
    insert into turn_grant (id, keys, places, waited, starts)
    select v_taken.grant_id, array_agg(key), array_agg(place), coalesce(array_agg(key) filter (where is_waited), '{}'),
           coalesce(array_agg(place) filter (where is_waited), '{}')
    from (
      select key, min(place) as place, key = any(p_batch.waited) as is_waited
      from unnest(v_taken.keys, v_taken.places) as entry(key, place) group by key
    ) as of_key;
    if p_are_left then
      v_left := array(select unnest(v_left) except select unnest(v_taken.keys));
    end if;
  end loop;
  if v_left <> '{}' then
    perform count_apart(v_left, array_fill(0::bigint, array[cardinality(v_left)]));
  end if;
end $$;

-- These keys have a turn that is part of no grant, and rows that may wait after p_starts.
create or replace function count_apart(p_keys bigint[], p_starts bigint[]) returns void
language plpgsql as $$
begin
  with apart as materialized (
    select entry.key, entry.start,
           (select ctid from key_state where key_state.key = entry.key order by version desc limit 1) as state
    from (select key, min(start) as start from unnest(p_keys, p_starts) as entry(key, start) group by key) as entry
  ),
  updated as (
    update key_state
    set turns = greatest(turns, 1), low = least(low, apart.start), waits = true, listed = false
    from apart
    where key_state.ctid = apart.state
  )
  insert into key_state (key, turns, low, waits) select key, 1, start, true from apart where state is null;
end $$;

-- Notes of which keys more rows wait: of open grants in their rows, of turns that have just been given out in the answer.
create or replace function note_waited(
  p_grants bigint[], p_look key_look, p_proposals key_proposal[], p_followers key_proposal[]
) returns bigint[]
language plpgsql as $$
begin
  if p_look.behind_keys is null and p_proposals is null and p_followers is null then
    return p_look.waited;
  end if;
  if p_grants <> '{}' then
    perform note_behind(p_grants, p_look.behind_keys, p_look.behind_seqs, p_proposals);
  end if;
  return p_look.waited || p_look.behind_keys || (select array_agg(key) from unnest(p_proposals))
    || (select array_agg(key) from unnest(p_followers));
end $$;

-- Rows of these keys wait behind turns of open grants, from the given seqs on.
create or replace function note_behind(p_grants bigint[], p_keys bigint[], p_seqs bigint[], p_proposals key_proposal[]) returns void
language plpgsql as $$
begin
  with behind as (
    select id, array_agg(held.key) as keys, array_agg(least(held.place, read.seq - 1)) as starts
    from turn_grant
    cross join lateral unnest(keys, places) as held(key, place)
    join (
      select * from unnest(p_keys, p_seqs) as read(key, seq)
      union all
      select key, first_seq from unnest(p_proposals) where is_held
    ) as read using (key)
    where id = any(p_grants) and (key <> all(waited) or read.seq < held.place)
    group by id
  )
  update turn_grant set waited = waited || behind.keys, starts = turn_grant.starts || behind.starts
  from behind where turn_grant.id = behind.id;
end $$;

-- These keys' turns have come back alone. Answers which of them were part of a grant, and of which jobs wait and from where on.
-- A turn that comes back from before its job was not used: that job waits too.
create or replace function leave_grants(
  p_grants bigint[], p_keys bigint[], p_places bigint[], out left_keys bigint[], out waited bigint[], out seqs bigint[]
)
language plpgsql as $$
declare
  v_returned bigint[];
  v_grant    record;
begin
  left_keys := '{}';
  if p_grants = '{}' then
    return;
  end if;
  v_returned := array(select key from unnest(p_keys, p_places) as entry(key, place) where place >= 0);
  for v_grant in select * from turn_grant where id = any(p_grants) and keys && v_returned loop
    left_keys := left_keys || array(select unnest(v_grant.keys) intersect select unnest(v_returned));
    select waited || array_agg(key), seqs || array_agg(start + 1) into waited, seqs
    from (
      select * from unnest(v_grant.waited, v_grant.starts)
      union all
      select key, returned.place
      from unnest(p_keys, p_places) as returned(key, place)
      join unnest(v_grant.keys, v_grant.places) as held(key, place) using (key)
      where returned.place between 0 and held.place - 1
    ) as behind(key, start)
    where key = any(left_keys) and key = any(v_grant.keys);
    update turn_grant
    set (keys, places) = (
      select coalesce(array_agg(key), '{}'), coalesce(array_agg(place), '{}')
      from unnest(v_grant.keys, v_grant.places) as held(key, place) where key <> all(left_keys))
    where id = v_grant.id;
  end loop;
end $$;

-- Ends grants. Their turns are free from now on, but not those of p_apart. Answers the keys of which jobs wait, and from where on.
create or replace function end_grants(p_grants bigint[], p_apart apart_key[], out waited bigint[], out seqs bigint[])
language plpgsql as $$
declare
  v_grant record;
  v_apart bigint[];
begin
  for v_grant in delete from turn_grant where id = any(p_grants) returning * loop
    v_apart := case when p_apart is null then '{}'
                    else array(select key from unnest(p_apart) where grant_id = v_grant.id) end;
    if v_grant.waited <> '{}' then
      select waited || array_agg(key), seqs || array_agg(start + 1) into waited, seqs
      from unnest(v_grant.waited, v_grant.starts) as behind(key, start) where key = any(v_grant.keys);
    end if;
    if v_grant.keys && v_apart then
      perform count_apart(array_agg(key), array_agg(start))
      from (
        select key, place - 1 from unnest(v_grant.keys, v_grant.places) as job(key, place)
        union all
        select * from unnest(v_grant.waited, v_grant.starts)
      ) as held(key, start)
      where key = any(v_apart) and key = any(v_grant.keys);
    end if;
  end loop;
end $$;
