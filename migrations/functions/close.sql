-- What people do to single jobs: cancel what is pending, replay or discard what is dead.

-- False: the job is not pending (any more). `scheduled` first: a job moves from there to `ready`, and whoever waits
-- for that move finds it in the second delete.
create or replace function cancel(p_id uuid) returns boolean
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_job record;
begin
  delete from scheduled where id = p_id returning lane, attempt, abandonments, -1 as scheduled into v_job;
  if not found then
    delete from ready where id = p_id returning lane, attempt, abandonments, 0 as scheduled into v_job;
  end if;
  if not found then
    return false;
  end if;
  insert into closed (id, status, closed_at, lane, attempt, abandonments)
  values (p_id, 'cancelled', now(), v_job.lane, v_job.attempt, v_job.abandonments);
  insert into ledger (lane, pending, scheduled, cancelled) values (v_job.lane, -1, v_job.scheduled, 1);
  return true;
end $$;

-- Dead jobs start again from attempt 0, with a new payload if one is given; their history stays. One after the other
-- with some time between them, if asked, so that a replay is not a second outage. Returns those that were dead.
create or replace function replay(p_ids uuid[], p_payload jsonb default null, p_seconds_apart float8 default 0)
returns setof uuid
language plpgsql
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_ids      uuid[];
  v_lanes    int[];
  v_earliest timestamptz; -- run_at
  v_fault    text := payload_fault_of(p_payload);
begin
  if v_fault is not null then
    perform refuse(v_fault);
  end if;
  with revived as (
    delete from closed where id = any(p_ids) and status = 'dead' returning id, lane
  )
  select array_agg(revived.id), array_agg(revived.lane) into v_ids, v_lanes from revived;

  -- What died of its expiry would die of it again.
  with renewed as (
    update job
    set payload = coalesce(p_payload, payload),
        expires_at = case when expiry_of(id, expires_at) <= now() + interval '1 day'
                          then now() + interval '30 days' else expires_at end
    where id = any(v_ids)
      and (p_payload is not null or expiry_of(id, expires_at) <= now() + interval '1 day')
    returning id, expires_at
  )
  insert into expiry (expires_at, id) select expires_at, id from renewed where expires_at is not null;

  -- No longer isolated either: the lane beside those of isolated jobs.
  with revived as materialized (
    select dead.id, lane_of(lane.queue, lane.type, lane.priority) as lane, lane.lane as old_lane,
           (row_number() over (order by dead.id) - 1) * p_seconds_apart as seconds
    from unnest(v_ids, v_lanes) as dead(id, lane) join lane on lane.lane = dead.lane
  ),
  readied as (
    insert into ready (seq, id, lane) select nextval('ready_seq'), id, lane from revived where seconds <= 0
  ),
  postponed as (
    insert into scheduled (run_at, id, lane)
    select clock_timestamp() + make_interval(secs => seconds), id, lane from revived where seconds > 0
    returning run_at
  ),
  risen as (
    insert into ledger (lane, dead) select old_lane, -count(*) from revived group by old_lane
  ),
  booked as (
    insert into ledger (lane, pending, scheduled)
    select lane, count(*), count(*) filter (where seconds > 0) from revived group by lane
  )
  select min(run_at) into v_earliest from postponed;
  perform keep_reachable(v_earliest);
  return query select unnest(v_ids);
end $$;

-- Dead jobs that nobody wants again. Returns those that were dead.
create or replace function discard(p_ids uuid[]) returns setof uuid
language plpgsql
set search_path from current
set enable_seqscan = off
set jit = off
as $$
begin
  return query
    with discarded as (
      update closed set status = 'discarded', closed_at = now()
      where id = any(p_ids) and status = 'dead'
      returning id, lane
    ),
    booked as (
      insert into ledger (lane, dead, discarded) select lane, -count(*), count(*) from discarded group by lane
    )
    select id from discarded;
end $$;
