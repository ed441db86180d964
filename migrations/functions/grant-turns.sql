-- grant turns: the part of the dispatcher (dispatch.sql) that gives turns out and writes them down.

-- Locks the rows of the jobs that get a turn, and writes what the keys of the proposals stand at then. A key whose next row
-- is locked, because somebody cancels it, gets no turn: nothing may pass that row until it is known how the cancel ends. So
-- the turn goes back to the lane of returned turns, and is looked at again by the next dispatch.
create or replace function grant_turns(
  p_batch claim_batch, p_granted granted_jobs, p_proposals key_proposal[], p_followers key_proposal[]
) returns granted_jobs
language plpgsql as $$
declare
  v_heads     granted_jobs := p_granted;
  v_others    granted_jobs;
  v_followers int := coalesce(cardinality(p_followers), 0);
  v_locked    locked_jobs;
  v_stuck     bigint[] := '{}';
begin
  if coalesce(v_heads.heads, 0) = 0 and p_proposals is null then
    return v_heads;
  end if;
  if v_followers > 0 then
    select array_agg(tid), array_agg(key), array_agg(lane) into v_others.tids, v_others.keys, v_others.lanes
    from unnest(p_followers);
  end if;
  v_locked := lock_granted(v_heads.tids || v_others.tids);
  if coalesce(cardinality(v_locked.tids), 0) < v_heads.heads + v_followers then
    v_stuck := return_stuck(p_batch.queue, p_granted, p_proposals, coalesce(v_locked.tids, '{}'));
    v_heads := without_keys(v_heads, v_stuck);
    v_others := locked_followers(p_followers, coalesce(v_locked.tids, '{}'), v_stuck);
  else
    v_heads.locked := v_locked;
  end if;
  if p_proposals is not null then
    perform return_turns(p_batch.queue, array_agg(key), array_agg(-1)) from unnest(p_proposals) where is_passed;
    perform write_key_states(p_batch, p_proposals, v_stuck);
  end if;
  if v_others.keys is not null then
    perform note_followed(v_others.keys);
  end if;
  if (p_batch.policy).seconds_apart is not null and v_heads.heads > 0 then
    v_heads := pace_shares(v_heads, (p_batch.policy).seconds_apart);
  end if;
  v_heads.tids := v_heads.tids || v_others.tids;
  v_heads.keys := v_heads.keys || v_others.keys;
  v_heads.lanes := v_heads.lanes || v_others.lanes;
  return v_heads;
end $$;

-- Locks rows of jobs that wait, and answers them as locked_rows does.
create or replace function lock_granted(p_tids tid[]) returns locked_jobs
language plpgsql as $$
declare
  v_jobs locked_jobs;
begin
  select array_agg(tid), array_agg(id order by id), array_agg(seq order by id), max(seq),
         case when max(attempt) > 0 then array_agg((attempt + 1)::smallint order by id) end,
         case when max(abandonments) > 0 then array_agg(abandonments order by id) end,
         coalesce(array_agg(id) filter (where attempt > 0), '{}'), array_agg(key order by id), array_agg(seq order by id)
  into v_jobs
  from (
    select ctid as tid, id, seq, attempt, abandonments, key from ready where ctid = any(p_tids) for update skip locked
  ) as locked;
  return v_jobs;
end $$;

-- The jobs that get a turn, in the order in which they are to be taken.
create or replace function first_of_keys(p_granted granted_jobs, p_proposals key_proposal[]) returns granted_jobs
language plpgsql as $$
begin
  if p_proposals is not null then
    select array_agg(tid order by rank), array_agg(key order by rank), array_agg(lane order by rank), count(*),
           array_agg(rank order by rank)
    into p_granted
    from (
      select tid, key, lane, seq as rank
      from unnest(p_granted.tids, p_granted.keys, p_granted.lanes, p_granted.seqs) as first(tid, key, lane, seq)
      union all
      select tid, key, lane, rank from unnest(p_proposals) where tid is not null
    ) as head;
  end if;
  return p_granted;
end $$;

-- Returns the turns of keys whose next row is not locked by us. Answers these keys.
create or replace function return_stuck(p_queue text, p_granted granted_jobs, p_proposals key_proposal[], p_locked tid[])
returns bigint[]
language plpgsql as $$
declare
  v_granted  bigint[];
  v_seqs     bigint[];
  v_proposed bigint[];
  v_starts   bigint[];
begin
  select array_agg(key), array_agg(seq) into v_granted, v_seqs
  from unnest(p_granted.tids, p_granted.keys, p_granted.seqs) as first(tid, key, seq)
  where tid <> all(p_locked) and key not in (select key from unnest(p_proposals));
  select array_agg(key), array_agg(start) into v_proposed, v_starts
  from unnest(p_proposals) where tid = any(p_granted.tids) and tid <> all(p_locked);
  perform count_apart(v_granted, array(select seq - 1 from unnest(v_seqs) as seq));
  perform return_turns(p_queue, v_granted || v_proposed, array(select seq - 1 from unnest(v_seqs) as seq) || v_starts);
  return coalesce(v_granted || v_proposed, '{}');
end $$;

-- Jobs of these keys follow the first in a run. They may be put back, so they wait.
create or replace function note_followed(p_keys bigint[]) returns void
language plpgsql as $$
begin
  update key_state
  set waits = true
  from (
    select (select ctid from key_state where key_state.key = entry.key order by version desc limit 1) as state
    from (select distinct key from unnest(p_keys) as key) as entry
  ) as followed
  where key_state.ctid = followed.state and not waits;
end $$;

-- The followers in front of which nothing is locked.
create or replace function locked_followers(p_followers key_proposal[], p_locked tid[], p_stuck bigint[])
returns granted_jobs
language plpgsql as $$
declare
  v_others granted_jobs;
begin
  select array_agg(tid order by rank), array_agg(key order by rank), array_agg(lane order by rank), null
  into v_others
  from (select *, bool_and(tid = any(p_locked)) over (partition by key order by seq) as fits from unnest(p_followers))
    as follower
  where fits and key <> all(p_stuck);
  return v_others;
end $$;

-- Writes the keys that stand at something else now.
--   low      the last place that was given out. It is not written while the turn goes from one job to the next: the turn that
--            comes back has the place. The jobs of a fair key are given out in any order, so its `low` lies before the first
--            that waits.
--   late     stays while the turn is out, because the row waits behind it. Whoever gets the turn next starts from there.
--   waits    rows were read that got no turn; or the key has followers, which may be put back.
--   listed   a fair key's job has a turn, until the job is claimed or is gone (a place of 1).
--
-- Where the turn is part of a grant, it is not counted here. If such a turn is out already, the grant says that rows wait.
create or replace function write_key_states(p_batch claim_batch, p_proposals key_proposal[], p_stuck bigint[]) returns void
language plpgsql as $$
begin
  with judged as (
    select key, state, turns, low, late, waits, listed, turns_out + counted + stuck as new_turns,
           turns_out + counted + stuck > 0 or coalesce(is_passed, false) as new_waits,
           case when kind = 'fair' then coalesce(head_seq - 1, low)
                when granted > 0 then seq when turns_out = 0 then greatest(low, place) else low end as new_low,
           case when granted > 0 or (turns_out = 0 and stuck = 0) then null else least(late, first_seq) end as new_late,
           case when granted > 0 then kind = 'fair' else listed and place <> 1 end as new_listed
    from (
      select *, greatest(turns - returned, 0) as turns_out, (key = any(p_stuck))::int as stuck,
             (tid is not null and key <> all(p_stuck))::int as granted,
             (tid is not null and key <> all(p_stuck)
               and not (lane = any(p_batch.granting)
                        and (p_batch.buckets is null or p_batch.owners is not null or abs(key % 360) = any(p_batch.buckets))))::int
               as counted
      from unnest(p_proposals)
      where not is_held
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

-- Jobs that have got their turn and are not taken now wait for it in their lanes, at a new place.
create or replace function list_granted(p_tids tid[]) returns void
language plpgsql as $$
begin
  update ready
  set lane = -listed.lane, place = listed.seq, seq = nextval('ready_seq')
  from (
    select ready.ctid as tid, lane, seq
    from unnest(p_tids) with ordinality as granted(tid, number) join ready on ready.ctid = granted.tid
    order by number offset 0
  ) as listed
  where ready.ctid = listed.tid;
end $$;
