-- waiting_for: why does this pending job not run? Null: the job is not pending. If several reasons hold, the first of this
-- list is the answer. src/core/policy/waiting-for.ts makes the sentence for people.
--   { kind: time, at, attempt }                     it is not due; attempt above 0: it is the retry after that attempt
--   { kind: key, holder, job_ids, at?, attempt? }   other jobs of its partition key come first
--   { kind: pause, paused: queue | type, since }
--   { kind: breaker, state: open | closing, since }
--   { kind: limit, limited, max?, seconds?, at?, fair_key? }
--   { kind: turn, is_isolated }                     nothing holds it
-- A blocked job is answered with one of:
--   { kind: jobs, count, job_ids, at? }             it waits for the end of jobs; some of their ids; `at`: a time-out
--   { kind: signal, name, key, at? }
--
-- It is one snapshot and locks nothing. Every look is by an index and bounded, except for the leases: they have no index by
-- job or key, so those with keys are read (docs/decisions/processing-look-up.md).
create or replace function waiting_for(
  p_id uuid,
  p_limits jsonb default null -- as in claim(): the database does not know the limits of types
) returns jsonb
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- the first row of a key, without sorting all of them
set jit = off
as $$
declare
  v_row  record;
  v_lane lane%rowtype;
begin
  select * into v_row
  from (
    select lane, key, place, seq, attempt, null::timestamptz as run_at from ready where id = p_id
    union all
    select lane, key, place, null, attempt, run_at from scheduled where id = p_id
  ) as pending;
  if not found then
    return held_by_blockers(p_id);
  end if;
  -- A job with a key waits under the negative number of its lane until it has the key's turn.
  select * into v_lane from lane where lane = abs(v_row.lane);
  return coalesce(
    case when v_row.run_at > now() then held_by_time(v_lane, v_row.place, v_row.run_at, v_row.attempt, p_id) end,
    case when v_row.lane < 0 and v_lane.kind = 'ordered' then held_by_key(v_lane.queue, v_row.key, v_row.seq) end,
    held_by_pause(v_lane),
    held_by_breaker(v_lane.type),
    case when v_row.lane < 0 and v_lane.kind = 'fair' then held_by_share(v_lane.queue, v_row.key, p_id) end,
    held_by_limit(v_lane.type, p_limits -> v_lane.type),
    jsonb_build_object('kind', 'turn', 'is_isolated', v_lane.group_size > 0));
end $$;

-- The functions below run with the planner settings of waiting_for(), which calls them. Each answers null if it does not
-- hold the job.

create or replace function held_by_blockers(p_id uuid) returns jsonb
language sql stable as $$
  select jsonb_strip_nulls(
    case when signal_name is not null then jsonb_build_object('kind', 'signal', 'name', signal_name, 'key', signal_key, 'at', until)
         else jsonb_build_object('kind', 'jobs', 'count', togo, 'at', until, 'job_ids', (
           select coalesce(jsonb_agg(blocker), '[]')
           from (select blocker from edge where edge.wait = blocked.wait order by blocker limit 10) as first)) end)
  from blocked where id = p_id
$$;

-- A job of a fair key that has its turn in `scheduled` waits for the rate (pace_shares). A retry of it has no turn there.
create or replace function held_by_time(
  p_lane lane, p_place bigint, p_run_at timestamptz, p_attempt smallint, p_id uuid
) returns jsonb
language sql stable as $$
  select case when p_lane.kind = 'fair' and p_place is not null
              then jsonb_build_object('kind', 'limit', 'limited', 'share_rate', 'at', p_run_at,
                                      'fair_key', (select fair_key from job where id = p_id))
              else jsonb_build_object('kind', 'time', 'at', p_run_at, 'attempt', p_attempt) end
$$;

-- The job that has the turn of the key is in one of four tables. If it is in none, the turn is on its way back to the
-- dispatcher, and the first job that waits before this one gets it. p_seq is its place in the key; null: it has none yet.
create or replace function held_by_key(p_queue text, p_key bigint, p_seq bigint) returns jsonb
language sql stable as $$
  select jsonb_build_object('kind', 'key') || coalesce(
    (select jsonb_build_object('holder', 'dead', 'job_ids', jsonb_build_array(id), 'at', closed_at)
     from closed where key = p_key limit 1),
    (select jsonb_build_object('holder', case when run_at > now() then 'scheduled' else 'ready' end,
                               'job_ids', jsonb_build_array(id), 'at', run_at, 'attempt', attempt)
     from scheduled where key = p_key and place is not null limit 1),
    (select jsonb_build_object('holder', 'leased', 'job_ids', to_jsonb(array_agg(entry.id order by entry.place)))
     from lease cross join lateral unnest(ids, keys, places) as entry(id, key, place)
     where deadline > now() - interval '1 hour' -- a range of the index, not the whole table
       and lease.keys is not null and p_key = any(lease.keys) and entry.key = p_key
     having count(*) > 0),
    turn_in_ready(p_queue, p_key),
    (select jsonb_build_object('holder', 'blocked', 'job_ids', jsonb_build_array(id), 'at', until)
     from blocked where key = p_key and place is not null limit 1),
    (select jsonb_build_object('holder', 'waiting', 'job_ids', jsonb_build_array(id))
     from ready
     where key = p_key and lane < 0 and seq < coalesce(p_seq, 9223372036854775807)
       and seq > (select waits_after(p_queue, p_key, returned_place(p_queue, p_key)))
     order by seq limit 1))
$$;

-- By the index of buckets. The index of keys would lead over all jobs that wait behind it.
create or replace function turn_in_ready(p_queue text, p_key bigint) returns jsonb
language sql stable as $$
  select jsonb_build_object('holder', 'ready', 'job_ids', jsonb_build_array(id))
  from ready
  where lane = any(array(select lane.lane from lane where queue = p_queue and kind = 'ordered'))
    and abs(key % 360) = abs(p_key % 360) and place is not null
    and key + 0 = p_key -- `key` alone would choose the other index
  limit 1
$$;

-- No job of the key waits up to here. Who reads from here on passes no dead rows of jobs that were taken before. p_place is
-- that of the turn: key_state is not written while a turn goes from one job of the key to the next.
create or replace function waits_after(p_queue text, p_key bigint, p_place bigint) returns bigint
language sql stable as $$
  select coalesce(
    (select min(start - (start > after)::int) -- the job itself waits as long as nobody has claimed it
     from (select grants from key_cursor where queue = p_queue order by version desc limit 1) as newest
     join turn_grant on turn_grant.id = any(grants) and p_key = any(keys)
     left join grant_ahead on grant_ahead.id = turn_grant.id
     cross join lateral unnest(keys || waited, places || starts) as held(key, start)
     where key = p_key),
    (select coalesce(late - 1, greatest(low, p_place)) from key_state where key = p_key order by version desc limit 1),
    p_place, 0)
$$;

-- The place up to which the key was worked, if its turn has come back and no dispatcher has read that.
create or replace function returned_place(p_queue text, p_key bigint) returns bigint
language sql stable as $$
  select max(abs(returned[cardinality(returned) / 2 + n])) -- keys, and then their places
  from (
    select lane, coalesce((select cursor_seqs[lane] from cursors order by id desc limit 1), 0) as low
    from lane where queue = p_queue and kind = 'returns' offset 0
  ) as line
  cross join lateral (
    select returned, place from ready where ready.lane = line.lane and seq >= line.low order by seq limit 100
  ) as unread
  cross join lateral generate_series(1, cardinality(returned) / 2) as n
  where place is null and p_key = any(returned) and returned[n] = p_key
$$;

create or replace function held_by_pause(p_lane lane) returns jsonb
language sql stable as $$
  select jsonb_build_object('kind', 'pause', 'paused', kind, 'since', since)
  from pause
  where (kind = 'queue' and name = p_lane.queue) or (kind = 'type' and name = p_lane.type)
  order by kind
  limit 1
$$;

-- The breaker holds the type back in the cases in which breaker_quota() bounds what a claim may take.
create or replace function held_by_breaker(p_type text) returns jsonb
language sql stable as $$
  select jsonb_build_object('kind', 'breaker', 'state', case when closed_at is null then 'open' else 'closing' end,
                            'since', coalesce(closed_at, opened_at))
  from breaker
  where type = p_type and step is not null
    and (closed_at is null
         or (closed_at between now() - breaker_window() and now()
             and (step <= 64 or exists (select from lease where key = step_lease))))
$$;

-- A cap or a rate of its fair key.
create or replace function held_by_share(p_queue text, p_key bigint, p_id uuid) returns jsonb
language sql stable as $$
  select jsonb_build_object('kind', 'limit', 'fair_key', (select fair_key from job where id = p_id))
         || case when turns >= concurrency then jsonb_build_object('limited', 'share_concurrency', 'max', concurrency)
                 else jsonb_build_object('limited', 'share_rate', 'at', next_at) end
  from (select turns, next_at from key_state where key = p_key order by version desc limit 1) as newest
  join key_policy on queue = p_queue
  where turns >= concurrency or (seconds_apart is not null and next_at > now())
$$;

-- Each part of the limit is looked at by itself, so that the answer can name it.
create or replace function held_by_limit(p_type text, p_limit jsonb) returns jsonb
language plpgsql stable as $$
begin
  if p_limit ? 'concurrency' and limit_quota(p_type, p_limit - '{rate,seconds}'::text[], clock_timestamp()) = 0 then
    return jsonb_build_object('kind', 'limit', 'limited', 'concurrency', 'max', p_limit -> 'concurrency');
  elsif p_limit ? 'rate' and limit_quota(p_type, p_limit - 'concurrency', clock_timestamp()) = 0 then
    return jsonb_build_object('kind', 'limit', 'limited', 'rate', 'max', p_limit -> 'rate',
                              'seconds', p_limit -> 'seconds');
  end if;
  return null;
end $$;
