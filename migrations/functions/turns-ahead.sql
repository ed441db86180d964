-- turns ahead: turns for the claims that come next. Claims of a queue with keys wait for each other at the queue's lock, and each
-- holds it until its transaction ends. So the dispatcher gives out turns for the next few claims too. Such turns are grants
-- (turn-grants.sql) that no lease has yet: they are *ahead*. A claim takes jobs of a grant ahead without the lock.
--
-- A grant ahead holds the turns of its keys, as any grant does. Its jobs stay where they wait, unlocked. A row of grant_ahead says
-- which of them nobody has claimed. A claim locks that row, skips rows that others have locked, and moves `after` or deletes the
-- row. So no two claims take the same jobs. The claim that takes the last ones has the grant in its lease.
--
-- By then a job may be gone or locked, because somebody cancels it. Its key is *apart* from the lease, as if the job had left the
-- lease at once, and the turn comes back by itself (return_turns), with the place before the job.
--
-- A claim takes jobs of a grant ahead only if nothing in the lanes comes before them (take_ahead). A claim that may not have them, as
-- one that asks for other types, takes the lock and moves them to their lane (list_ahead). Only turns that came back are not looked
-- at, so such a key may wait for as many jobs as one dispatch gives out ahead (jobs_ahead).
--
-- On the ring each grant is for one worker. Others leave it alone for 15 to 30 s (mark_seq), or until there are many (grants_ahead).

-- How many jobs get their turns ahead: three times as many as a claim asks for, but 300 at most. p_found: so many turns came back.
-- Their jobs come first, and leave as many new ones to the next claims. On the ring the other workers have jobs ahead in any case.
create or replace function jobs_ahead(p_batch claim_batch, p_found int) returns int
language plpgsql as $$
declare
  c_grants constant int := 3;
  c_jobs   constant int := 300;
  v_jobs   int := greatest(p_batch.asked, least(c_grants * p_batch.asked, c_jobs));
begin
  return case when p_batch.owners is null then greatest(v_jobs - p_found, 0)
              else greatest((c_grants + 1) / keys_for_each(p_batch) - 1, 0) * 3 * p_batch.asked / 4 end;
end $$;

-- Divides the jobs that can have their turns: the first are for this claim, and the others get their turns ahead. So do those of
-- other workers. Jobs whose turns are not part of grants stay among the first.
create or replace function divide_granted(
  p_batch claim_batch, p_granted granted_jobs, p_gives_ahead boolean, out first granted_jobs, out ahead granted_jobs
)
language plpgsql as $$
begin
  first := p_granted;
  if not p_gives_ahead or p_batch.buckets is null and coalesce(p_granted.heads, 0) <= p_batch.jobs_left then
    return;
  end if;
  if p_batch.buckets is null and p_granted.lanes <@ p_batch.granting then -- as most often; they are in order
    first.tids := p_granted.tids[1 : p_batch.jobs_left];
    first.keys := p_granted.keys[1 : p_batch.jobs_left];
    first.lanes := p_granted.lanes[1 : p_batch.jobs_left];
    first.seqs := p_granted.seqs[1 : p_batch.jobs_left];
    first.heads := cardinality(first.keys);
    ahead.keys := p_granted.keys[p_batch.jobs_left + 1 :];
    ahead.lanes := p_granted.lanes[p_batch.jobs_left + 1 :];
    ahead.seqs := p_granted.seqs[p_batch.jobs_left + 1 :];
    ahead.heads := cardinality(ahead.keys);
    return;
  end if;
  select array_agg(tid order by seq) filter (where is_first), array_agg(key order by seq) filter (where is_first),
         array_agg(lane order by seq) filter (where is_first), count(*) filter (where is_first),
         array_agg(seq order by seq) filter (where is_first),
         array_agg(key order by seq) filter (where not is_first), array_agg(lane order by seq) filter (where not is_first),
         count(*) filter (where not is_first), array_agg(seq order by seq) filter (where not is_first)
  into first.tids, first.keys, first.lanes, first.heads, first.seqs, ahead.keys, ahead.lanes, ahead.heads, ahead.seqs
  from (
    select *, lane <> all(p_batch.granting)
                or is_own and row_number() over (partition by is_own order by seq) <= p_batch.jobs_left as is_first
    from (
      select *, p_batch.buckets is null or abs(key % 360) = any(p_batch.buckets) as is_own
      from unnest(p_granted.tids, p_granted.keys, p_granted.lanes, p_granted.seqs) as entry(tid, key, lane, seq)
    ) as owned
  ) as divided;
end $$;

-- Writes the grants of jobs that get their turns ahead, each about as large as a claim, and for one worker. Answers the cursor with
-- them.
create or replace function grant_ahead(p_cursor key_cursor, p_batch claim_batch, p_ahead granted_jobs) returns key_cursor
language plpgsql as $$
begin
  if coalesce(p_ahead.heads, 0) = 0 then
    return p_cursor;
  end if;
  with batch as materialized (
    select nextval('turn_grant_base') + lane as id, lane, abs(keys[1] % 360) as bucket, keys, seqs, waited, starts
    from parts_ahead(p_batch, p_ahead)
    cross join lateral (
      select coalesce(array_agg(key), '{}') as waited, coalesce(array_agg(seq), '{}') as starts
      from unnest(keys, seqs) as entry(key, seq) where key = any(p_batch.waited)
    ) as behind
  ),
  given as (
    insert into turn_grant (id, keys, places, waited, starts) select id, keys, seqs, waited, starts from batch
  ),
  written as (
    insert into grant_ahead (id, lane, after, bucket, seq)
    select id, lane, 0, bucket, coalesce(pg_sequence_last_value('ready_seq'), 0) from batch
  )
  select p_cursor.ahead || array_agg(id), p_cursor.grants || array_agg(id) into p_cursor.ahead, p_cursor.grants from batch;
  return p_cursor;
end $$;

-- The jobs of each grant, oldest first.
create or replace function parts_ahead(p_batch claim_batch, p_ahead granted_jobs)
returns table (lane int, keys bigint[], seqs bigint[])
language plpgsql as $$
declare
  v_parts int := ceil(p_ahead.heads / p_batch.asked::float8);
begin
  if p_batch.owners is null and p_ahead.lanes[1] = all(p_ahead.lanes) then -- as most often; they are in order
    return query
      select p_ahead.lanes[1], p_ahead.keys[low + 1 : high], p_ahead.seqs[low + 1 : high]
      from generate_series(1, v_parts) as part
      cross join lateral (select (part - 1) * p_ahead.heads / v_parts as low, part * p_ahead.heads / v_parts as high) as bounds;
    return;
  end if;
  return query
    select entry.lane, array_agg(key order by seq), array_agg(seq order by seq)
    from (
      select *, ntile(parts) over (partition by counted.lane, owner order by seq) as part
      from (
        select *, ceil(count(*) over (partition by owned.lane, owner) / p_batch.asked::float8)::int as parts
        from (
          select *, coalesce(p_batch.owners[(abs(key % 360) + 1)::int], 0) as owner
          from unnest(p_ahead.keys, p_ahead.lanes, p_ahead.seqs) as given(key, lane, seq)
        ) as owned
      ) as counted
    ) as entry
    group by entry.lane, owner, part order by min(seq);
end $$;

-- The grants ahead of which jobs are left and that a claim may take: its own first, old ones, and all if there are many because
-- others do not take theirs. Null: none.
create or replace function grants_ahead(p_batch claim_batch) returns bigint[]
language plpgsql as $$
declare
  c_grants constant int := 3;
  v_ahead  bigint[] := (select ahead from key_cursor where queue = p_batch.queue order by version desc limit 1);
  v_many   int := c_grants * keys_for_each(p_batch);
begin
  if coalesce(v_ahead, '{}') = '{}' then
    return null;
  elsif p_batch.buckets is null then
    return (select array_agg(id order by id) from grant_ahead where id = any(v_ahead));
  end if;
  return (
    select array_agg(id order by is_own desc, id)
    from (
      select id, seq, bucket = any(p_batch.buckets) as is_own, count(*) over () as grants
      from grant_ahead where id = any(v_ahead)
    ) as ahead
    where is_own or seq <= p_batch.mark_seq or grants > v_many);
end $$;

-- Whether a claim that has taken jobs ahead leaves it at that. Grants are about as large as the claim whose dispatch gave them out, so
-- those of a claim for one job are too small for a claim for many.
create or replace function is_enough(p_batch claim_batch) returns boolean
language plpgsql as $$
begin
  return p_batch.taken is not null and (p_batch.has_more or p_batch.jobs_left <= 3 * p_batch.asked / 4);
end $$;

-- Takes jobs of grants ahead without the queue's lock. Otherwise the batch stays as it is.
create or replace function take_without_lock(
  p_batch claim_batch, p_ahead bigint[], p_types text[], p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean, p_policy jsonb
) returns claim_batch
language plpgsql as $$
begin
  p_batch.policy := key_policy_of(p_batch.queue);
  if p_batch.policy is distinct from policy_with(p_batch.policy, p_policy) then
    return p_batch;
  end if;
  return take_ahead(p_batch, p_ahead, lanes_with_keys(p_batch.queue, p_types, p_limits),
                    next_level(p_batch.queue, p_types, null, p_limits, p_cursor_seqs, p_isolated, true));
end $$;

-- Takes jobs of grants ahead, oldest first, if nothing comes before them: they are of the best priority of jobs with keys that the
-- claim asks for, and there is nothing to take in lanes of that priority or a better one. A claim that has jobs takes only whole
-- grants, because turns that two leases share come back one by one. `has_more` says that one was too large.
create or replace function take_ahead(p_batch claim_batch, p_ahead bigint[], p_lanes key_lanes, p_level lane_level)
returns claim_batch
language plpgsql as $$
declare
  v_grant grant_ahead%rowtype;
  v_left  int;
begin
  if p_level.priority >= p_lanes.priorities[1] then
    return p_batch;
  end if;
  while p_batch.jobs_left > 0 loop
    select * into v_grant from grant_ahead
    where id = any(p_ahead) and lane = any(p_lanes.straight)
      and p_lanes.priorities[array_position(p_lanes.lanes, lane)] = p_lanes.priorities[1]
    order by array_position(p_ahead, id) limit 1 for update skip locked;
    exit when not found;
    v_left := p_batch.jobs_left;
    p_batch := take_grant(p_batch, v_grant);
    if p_batch.jobs_left = v_left and p_batch.taken is not null then
      p_batch.has_more := true;
      exit;
    end if;
  end loop;
  return p_batch;
end $$;

-- Takes the next jobs of a grant ahead. If these are all that is left of it, the lease gets the grant, and the keys whose jobs it
-- has not are apart. Otherwise the keys of these jobs are apart from the lease that will get it.
create or replace function take_grant(p_batch claim_batch, p_ahead grant_ahead) returns claim_batch
language plpgsql as $$
declare
  v_taken   int := coalesce(cardinality(p_batch.taken), 0);
  v_grant   turn_grant%rowtype;
  v_keys    bigint[]; -- those that are left
  v_places  bigint[];
  v_is_last boolean;
  v_granted granted_jobs;
  v_mine    bigint[];
begin
  select * into v_grant from turn_grant where id = p_ahead.id;
  select array_agg(key order by place), array_agg(place order by place) into v_keys, v_places
  from unnest(v_grant.keys, v_grant.places) as held(key, place) where place > p_ahead.after;
  v_is_last := coalesce(cardinality(v_keys), 0) <= p_batch.jobs_left;
  if not v_is_last and p_batch.taken is not null then
    return p_batch;
  elsif v_is_last then
    delete from grant_ahead where id = p_ahead.id;
  else
    v_keys := v_keys[1 : p_batch.jobs_left];
    v_places := v_places[1 : p_batch.jobs_left];
    update grant_ahead set after = v_places[p_batch.jobs_left] where id = p_ahead.id;
  end if;

  v_granted.locked := lock_places(p_ahead.lane, v_places);
  v_granted.tids := (v_granted.locked).tids;
  v_granted.heads := coalesce(cardinality(v_granted.tids), 0);
  v_granted.lanes := array_fill(p_ahead.lane, array[v_granted.heads]);
  p_batch.straight := array[p_ahead.lane];
  p_batch.granting := case when v_is_last then array[p_ahead.lane] else '{}' end;
  p_batch.grant_base := p_ahead.id - p_ahead.lane;
  p_batch := take_granted(p_batch, v_granted, -1::smallint, 9::smallint);

  v_mine := p_batch.taken[v_taken + 1].keys;
  if coalesce(cardinality(v_mine), 0) < coalesce(cardinality(v_keys), 0) then
    -- Those that are there still were too large for this claim.
    perform list_granted(array(select ctid from ready where ctid = any(v_granted.tids) order by seq));
    perform return_missing(p_batch.queue, v_keys, v_places, (v_granted.locked).keys);
  end if;
  if v_is_last and coalesce(cardinality(v_mine), 0) < cardinality(v_grant.keys) then
    v_keys := array(select unnest(v_grant.keys) except select unnest(v_mine));
    if v_mine is null then
      perform return_grant(p_batch.queue, p_ahead.id, v_keys);
    else
      p_batch.taken[v_taken + 1].apart := v_keys;
    end if;
  end if;
  return p_batch;
end $$;

-- Locks the waiting rows at these places of a lane.
create or replace function lock_places(p_lane int, p_places bigint[]) returns locked_jobs
language plpgsql as $$
declare
  v_jobs locked_jobs;
begin
  select array_agg(tid order by id), array_agg(id order by id), array_agg(seq order by id), max(seq),
         case when max(attempt) > 0 then array_agg((attempt + 1)::smallint order by id) end,
         case when max(abandonments) > 0 then array_agg(abandonments order by id) end,
         coalesce(array_agg(id) filter (where attempt > 0), '{}'), array_agg(key order by id), array_agg(seq order by id)
  into v_jobs
  from (
    select ctid as tid, id, seq, attempt, abandonments, key from ready
    where lane = -p_lane and seq >= p_places[1] and seq <= p_places[cardinality(p_places)] and seq in (select unnest(p_places))
    for update skip locked
  ) as locked;
  return v_jobs;
end $$;

-- Returns the turns of the keys whose jobs are not there, or are locked by others.
create or replace function return_missing(p_queue text, p_keys bigint[], p_places bigint[], p_found bigint[]) returns void
language plpgsql as $$
begin
  perform return_turns(p_queue, array_agg(key), array_agg(place - 1))
  from unnest(p_keys, p_places) as missing(key, place)
  where key not in (select unnest(p_found));
end $$;

-- Moves the jobs of grants ahead to their lane, because this claim may not have them as they are. Their turns count one by one
-- from now on. Called by the dispatcher, under its lock. `ahead`: the grants that are left, because another claim takes them now,
-- or because they are of a lane that this claim does not ask for, or for another worker.
create or replace function list_ahead(
  p_cursor key_cursor, p_ahead bigint[], p_lanes key_lanes, out ahead bigint[], out are_listed boolean
)
language plpgsql as $$
declare
  v_ahead  grant_ahead%rowtype;
  v_grant  turn_grant%rowtype;
  v_keys   bigint[];
  v_places bigint[];
  v_jobs   locked_jobs;
begin
  are_listed := false;
  for v_ahead in
    delete from grant_ahead
    where id = any(array(
      select id from grant_ahead
      where id = any(p_ahead) and lane = any(p_lanes.lanes)
      for update skip locked))
    returning *
  loop
    select * into v_grant from turn_grant where id = v_ahead.id;
    select array_agg(key order by place), array_agg(place order by place) into v_keys, v_places
    from unnest(v_grant.keys, v_grant.places) as held(key, place) where place > v_ahead.after;
    v_jobs := lock_places(v_ahead.lane, v_places);
    perform list_granted(array(select ctid from ready where ctid = any(v_jobs.tids) order by seq));
    perform return_missing(p_cursor.queue, v_keys, v_places, v_jobs.keys);
    perform end_grants(array[v_grant.id], array(select row(v_grant.id, key)::apart_key from unnest(v_grant.keys) as key));
    are_listed := true;
  end loop;
  ahead := array(select id from grant_ahead where id = any(p_cursor.ahead));
end $$;

-- The waiting rows of a lane up to here were read, and those of them that have got their turns ahead were claimed. Null: none was
-- read.
create or replace function given_up_to(p_queue text, p_lane int) returns bigint
language sql stable as $$
  select least(seqs[array_position(lanes, p_lane)],
               (select min(greatest(after, places[1] - 1))
                from grant_ahead join turn_grant using (id) where id = any(ahead) and lane = p_lane))
  from key_cursor where queue = p_queue order by version desc limit 1
$$;
