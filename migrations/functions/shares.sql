-- shares: what fair keys have beyond turns. A queue can cap how many jobs of one fair key run at a time, and say how far apart
-- they start. Only the dispatcher calls these.

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
  with early as materialized (
    select granted.tid, granted.lane,
           least(state.next_at, v_now + make_interval(secs => p_seconds_apart)) as next_at -- the clock may have stepped back
    from unnest(p_granted.tids, p_granted.keys, p_granted.lanes) as granted(tid, key, lane)
    join lane on lane.lane = granted.lane and lane.kind = 'fair'
    cross join lateral (
      select next_at from key_state where key_state.key = granted.key order by version desc limit 1
    ) as state
    where state.next_at > v_now
  ),
  removed as (
    delete from ready using early where ready.ctid = early.tid
    returning early.next_at, ready.id, early.lane, ready.attempt, ready.abandonments, ready.key, ready.seq
  ),
  postponed as (
    insert into scheduled (run_at, id, lane, attempt, abandonments, key, place)
    select next_at, id, lane, attempt, abandonments, key, seq from removed
    returning run_at, lane
  ),
  booked as (
    insert into ledger (lane, scheduled) select lane, count(*) from postponed group by lane
  )
  select array_agg(tid), (select min(run_at) from postponed) into v_early, v_first from early;
  perform keep_reachable(v_first);
  if v_early is not null then
    select array_agg(tid order by number), array_agg(key order by number), array_agg(lane order by number), count(*)
    into p_granted
    from unnest(p_granted.tids, p_granted.keys, p_granted.lanes) with ordinality as granted(tid, key, lane, number)
    where tid <> all(v_early);
  end if;
  return p_granted;
end $$;

-- A claim took these jobs of fair keys. Followers have no turn yet, so it is counted. The next dispatch looks at the keys
-- again, behind all other keys. Returns whether more of their jobs may wait.
create or replace function note_shares_taken(p_policy key_policy, p_keys bigint[]) returns boolean
language plpgsql as $$
declare
  v_keys  bigint[];
  v_waits boolean;
begin
  with taken as materialized (
    select key, count(*) as jobs,
           (select ctid from key_state where key_state.key = entry.key order by version desc limit 1) as state
    from unnest(p_keys) as entry(key)
    group by key
  ),
  counted as (
    update key_state
    set turns = turns + jobs - 1, listed = false,
        next_at = clock_timestamp() + make_interval(secs => p_policy.seconds_apart)
    from taken
    where key_state.ctid = taken.state
    returning key_state.key, waits
  )
  select array_agg(key), bool_or(waits) into v_keys, v_waits from counted;
  perform return_turns(p_policy.queue, v_keys, array_fill(-1::bigint, array[cardinality(v_keys)]));
  return v_waits;
end $$;
