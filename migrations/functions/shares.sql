-- shares: what fair keys have beyond turns. A queue can cap how many jobs of one fair key run at a time, and how far apart
-- they start. Only the dispatcher calls these.

-- With a rate a key has one job that may start and has not, until key_state.next_at is known. Whether the next one may be
-- given out: none is (next_at), or the one that was is gone, because it was cancelled or has expired.
create or replace function may_start(p_key bigint, p_next_at timestamptz, p_turns_out int, p_returned int) returns boolean
language plpgsql as $$
begin
  return p_next_at is distinct from 'infinity' or p_turns_out = 0
    or (p_returned > 0
        and not exists (select from ready where key = p_key and place is not null)
        and not exists (select from scheduled where key = p_key and place is not null));
end $$;

-- Jobs of fair keys that may not start yet wait in `scheduled`, with their turn. Returns the others.
create or replace function pace_shares(p_granted granted_jobs, p_seconds_apart float8) returns granted_jobs
language plpgsql as $$
declare
  v_now   timestamptz;
  v_early tid[];
  v_first timestamptz;
begin
  lock table scheduled in row exclusive mode; -- before the clock: see insert_jobs
  v_now := clock_timestamp();
  with fair as materialized (
    select granted.tid, granted.key, granted.place, granted.lane, state.tid as state,
           -- the clock may have stepped back
           least(state.next_at, v_now + make_interval(secs => p_seconds_apart)) as next_at
    from unnest(p_granted.tids, p_granted.keys, p_granted.places, p_granted.lanes) as granted(tid, key, place, lane)
    join lane on lane.lane = granted.lane and lane.kind = 'fair'
    cross join lateral (
      select ctid as tid, nullif(next_at, 'infinity') as next_at
      from key_state where key_state.key = granted.key order by version desc limit 1
    ) as state
  ),
  noted as (
    update key_state set next_at = 'infinity' where ctid = any(array(select state from fair))
  ),
  early as materialized (
    select * from fair where next_at > v_now
  ),
  removed as (
    delete from ready where ctid = any(array(select tid from early)) returning id, attempt, abandonments, key
  ),
  postponed as (
    insert into scheduled (run_at, id, lane, attempt, abandonments, key, place)
    select early.next_at, removed.id, early.lane, removed.attempt, removed.abandonments, early.key, early.place
    from removed join early using (key)
    returning run_at, lane
  ),
  booked as (
    insert into ledger (lane, scheduled) select lane, count(*) from postponed group by lane
  )
  select array_agg(tid), (select min(run_at) from postponed) into v_early, v_first from early;
  perform keep_reachable(v_first);
  if v_early is not null then
    select array_agg(tid), array_agg(key), array_agg(place), array_agg(lane), array_agg(is_head) into p_granted
    from unnest(p_granted.tids, p_granted.keys, p_granted.places, p_granted.lanes, p_granted.heads)
      as granted(tid, key, place, lane, is_head)
    where tid <> all(v_early);
  end if;
  return p_granted;
end $$;

-- A claim took these jobs of fair keys. Without a cap their turns come back at once, one for each key. With a rate the next
-- job of each key may start later, and somebody has to look at the key again.
create or replace function note_shares_taken(p_policy key_policy, p_keys bigint[], p_places bigint[]) returns void
language plpgsql as $$
begin
  if p_policy.seconds_apart is not null then
    update key_state
    set next_at = clock_timestamp() + make_interval(secs => p_policy.seconds_apart)
    where ctid = any(array(
      select (select ctid from key_state where key_state.key = taken.key order by version desc limit 1)
      from unnest(p_keys) as taken(key)));
  end if;
  if p_policy.concurrency is null or p_policy.seconds_apart is not null then
    perform return_turns(p_policy.queue, array_agg(pair))
    from (select key, max(place) * case when p_policy.concurrency is null then 1 else -1 end as place
          from unnest(p_keys, p_places) as taken(key, place) group by key) as taken
    cross join lateral unnest(array[taken.key, taken.place]) as pair;
  end if;
end $$;
