-- replay: dead jobs become pending again, one by its id or many by their type. They start from attempt 0 and keep their
-- errors. Every replay writes the audit. A dead job that blocks its key keeps the turn and its place; one that its key has
-- passed waits like a new job.
--
-- Replays and discards of the same job lock its row in `closed`. The first one changes it. The others wait, then find that
-- the row is gone or no longer dead.

-- Answers as answer_with_job does; `applied` is false when the job is not dead. A new payload is audited with the old one.
create or replace function replay(p_actor text, p_id uuid, p_payload jsonb default null) returns jsonb
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_before jsonb;
begin
  select jsonb_build_object('status', closed.status, 'dead_reason', closed.reason, 'attempts', closed.attempt)
         || case when p_payload is null then '{}' else jsonb_build_object('payload', job.payload) end
  into v_before
  from closed join job using (id)
  where closed.id = p_id and closed.status = 'dead'
  for update of closed;
  if not found then
    return answer_with_job(p_id, false);
  end if;
  perform revive(array[p_id], p_payload);
  perform write_audit(p_actor, 'replay', 'job ' || p_id, v_before,
    jsonb_build_object('status', 'pending', 'attempts', 0)
    || case when p_payload is null then '{}' else jsonb_build_object('payload', p_payload) end);
  return answer_with_job(p_id, true);
end $$;

-- Answers how many jobs of each queue are pending again. One row of the audit names all of them. Only the Worker of the release
-- before uses p_seconds_apart: a run does that now (dead-runs.sql).
create or replace function replay_many(
  p_actor text, p_type text, p_reason text, p_count int, p_seconds_apart float8 default 0
)
returns table (queue text, replayed bigint)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_ids uuid[] := revive(array(select id from dead_letters_of(p_type, p_reason, p_count)), null, p_seconds_apart);
begin
  perform write_audit(p_actor, 'replay many', 'type ' || p_type,
    jsonb_build_object('status', 'dead', 'dead_reason', p_reason),
    jsonb_build_object('status', 'pending', 'replayed', cardinality(v_ids), 'ids', to_jsonb(v_ids)));
  return query
    select lane.queue, count(*)
    from job join lane using (lane)
    where job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)]
    group by lane.queue;
end $$;

-- The jobs of a type that died first, at most `p_count`; with a reason, only those that died of it.
create or replace function dead_letters_of(p_type text, p_reason text, p_count int) returns setof closed
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select *
  from closed
  where status = 'dead'
    and lane = any(array(select lane.lane from lane where lane.type = p_type))
    and (p_reason is null or reason = p_reason)
  order by closed_at, id
  limit p_count
$$;

-- Takes the jobs that are dead out of `closed`. Those that died of a blocker wait for it again, and so do those that may have
-- expired while they waited; the others become pending.
create or replace function take_dead(
  p_ids uuid[],
  out ids uuid[],
  out lanes int[],   -- of each job while it was dead
  out keys bigint[], -- of those that blocked their keys, and their places
  out places bigint[],
  out victims uuid[], out all_ids uuid[]
)
language plpgsql as $$
#variable_conflict use_column
begin
  -- Every replay locks in the order of the ids, so two of them cannot deadlock.
  with locked as materialized (
    select id from closed where id = any(p_ids) and status = 'dead' order by id for update
  ),
  revived as (
    delete from closed where id = any(array(select id from locked)) returning id, lane, key, place, reason
  ),
  judged as materialized (
    select *, reason = 'blocker'
              or reason = 'expired' and key is null and exists (select from dependency where dependency.id = revived.id) as is_victim
    from revived
  ),
  booked as (
    insert into ledger (lane, dead) select lane, -count(*) from judged where is_victim group by lane
  )
  select coalesce(array_agg(id order by id) filter (where not is_victim), '{}'),
         array_agg(lane order by id) filter (where not is_victim),
         array_agg(key order by id) filter (where not is_victim),
         array_agg(place order by id) filter (where not is_victim),
         array_agg(id order by id) filter (where is_victim), coalesce(array_agg(id order by id), '{}')
  into ids, lanes, keys, places, victims, all_ids from judged;
end $$;

-- Moves the jobs that are dead from `closed` to `ready`, or to `blocked` if a blocker killed them, and answers their ids in order. With `p_seconds_apart` they become
-- due one after the other, the first in `p_seconds_ahead`, so that a replay of many is not a second outage.
create or replace function revive(
  p_ids uuid[], p_payload jsonb default null, p_seconds_apart float8 default 0, p_seconds_ahead float8 default 0
)
returns uuid[]
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
  v_fault     text := payload_fault_of(p_payload);
  v_dead      record;
  v_old_lanes int[];       -- each of them once
  v_new_lanes int[];       -- where the jobs of each go
  v_earliest  timestamptz; -- run_at
begin
  if v_fault is not null then
    perform refuse(v_fault);
  end if;
  select * into v_dead from take_dead(p_ids);
  perform renew(v_dead.all_ids, p_payload);
  if v_dead.victims is not null then
    perform block_again(v_dead.victims);
    perform note_moves(v_dead.victims, 'dead', 'blocked');
  end if;
  perform tell_victims(v_dead.all_ids);

  -- An isolated job goes back to the ordinary lane of its type. The lanes come before the statement that moves the jobs:
  -- lane_of inserts a lane that is missing, and may wait for another transaction that does the same.
  select array_agg(lane), array_agg(lane_of(queue, type, priority, p_kind => kind)) into v_old_lanes, v_new_lanes
  from lane where lane = any(v_dead.lanes);

  with revived as materialized (
    select dead.id, move.old_lane, p_seconds_ahead + (dead.number - 1) * p_seconds_apart as seconds, dead.place,
           coalesce(dead.key, key_of_job(queue, job.partition_key, job.fair_key)) as key,
           case when kind = 'plain' or dead.key is not null then move.new_lane else -move.new_lane end as lane
    from unnest(v_dead.ids, v_dead.lanes, v_dead.keys, v_dead.places) with ordinality as dead(id, lane, key, place, number)
    join unnest(v_old_lanes, v_new_lanes) as move(old_lane, new_lane) on move.old_lane = dead.lane
    join lane on lane.lane = move.new_lane
    cross join lateral (select case when kind <> 'plain' then partition_key end as partition_key, fair_key
                        from job where job.id = dead.id offset 0) as job
    order by dead.number
  ),
  readied as (
    insert into ready (seq, id, lane, key, place)
    select nextval('ready_seq'), id, lane, key, place from revived where seconds <= 0
  ),
  postponed as (
    insert into scheduled (run_at, id, lane, key, place)
    select clock_timestamp() + make_interval(secs => seconds), id, lane, key, place from revived where seconds > 0
    returning run_at
  ),
  booked as (
    insert into ledger (lane, dead, pending, scheduled)
    select old_lane, -count(*), null::bigint, null::bigint from revived group by old_lane
    union all
    select abs(lane), null, count(*), count(*) filter (where seconds > 0) from revived group by abs(lane)
  )
  select min(run_at) into v_earliest from postponed;
  perform keep_reachable(v_earliest);
  perform note_moves(v_dead.ids, 'dead', 'pending');
  return v_dead.all_ids;
end $$;

-- A job that is about to expire gets 30 days more, or it would die again. In hours: the length of 30 days depends on the
-- session's time zone. `p_ids` are sorted, so that a day's partition can be left out by its bounds.
create or replace function renew(p_ids uuid[], p_payload jsonb) returns void
language sql as $$
  with renewed as (
    update job
    set payload = coalesce(p_payload, payload),
        expires_at = case when expiry_of(id, expires_at) <= now() + interval '24 hours'
                          then now() + interval '720 hours' else expires_at end
    where id = any(p_ids) and id >= p_ids[1] and id <= p_ids[cardinality(p_ids)]
      and (p_payload is not null or expiry_of(id, expires_at) <= now() + interval '24 hours')
    returning id, expires_at
  )
  insert into expiry (expires_at, id) select expires_at, id from renewed where expires_at is not null
$$;
