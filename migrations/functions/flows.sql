-- flows: what became of the jobs of one enqueue_flow, and of their continuations. A flow's counts are its row and the changes in
-- flow_ledger that are not yet added to it: nobody who moves jobs waits for the row.

-- Adds changes to the flows' rows, and notes the time. An advisory lock lets one fold run at a time.
create or replace function fold_flows(p_limit int) returns int
language plpgsql
security definer
set search_path from current
as $$
declare
  v_rows int;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('sluice.fold_flows.' || current_schema(), 0)) then
    return 0;
  end if;
  with locked as materialized ( -- a cancel or delete may hold a flow for long: its changes stay
    select id from flow where id = any(array(select flow from flow_ledger limit p_limit)) for update skip locked
  ),
  removed as (
    delete from flow_ledger where ctid = any(array(
      select flow_ledger.ctid from flow_ledger join locked on locked.id = flow limit p_limit))
    returning *
  ),
  summed as materialized (
    select flow, count(*) as entries, sum(total) as total, sum(blocked) as blocked, sum(pending) as pending,
           sum(processing) as processing, sum(completed) as completed, sum(dead) as dead, sum(discarded) as discarded,
           sum(cancelled) as cancelled
    from removed group by flow
  ),
  added as (
    update flow
    set changed_at = now(), total = flow.total + coalesce(summed.total, 0), blocked = flow.blocked + coalesce(summed.blocked, 0),
        pending = flow.pending + coalesce(summed.pending, 0), processing = flow.processing + coalesce(summed.processing, 0),
        completed = flow.completed + coalesce(summed.completed, 0), dead = flow.dead + coalesce(summed.dead, 0),
        discarded = flow.discarded + coalesce(summed.discarded, 0), cancelled = flow.cancelled + coalesce(summed.cancelled, 0)
    from summed where flow.id = summed.flow
  )
  select coalesce(sum(entries), 0) into v_rows from summed;
  return v_rows;
end $$;

create or replace function flow_status(p_open bigint, p_bad bigint, p_cancelled bigint, p_cancelled_at timestamptz) returns text
language sql immutable
return case when p_open > 0 then 'running'
            when p_cancelled_at is not null then 'cancelled'
            when p_bad > 0 then 'dead'
            when p_cancelled > 0 then 'cancelled'
            else 'completed' end;

-- { flow_id, status, total, counts, created_at, cancelled_at }. Null: there is no such flow.
create or replace function find_flow(p_id uuid) returns jsonb
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select jsonb_build_object(
    'flow_id', id,
    'status', flow_status(blocked + pending + processing, dead + discarded, cancelled, cancelled_at),
    'total', total,
    'counts', jsonb_build_object('blocked', blocked, 'pending', pending, 'processing', processing, 'completed', completed,
                                 'dead', dead, 'cancelled', cancelled, 'discarded', discarded),
    'created_at', time_of_id(id), 'cancelled_at', cancelled_at)
  from (
    select flow.id, flow.cancelled_at, flow.total + coalesce(later.total, 0) as total,
           flow.blocked + coalesce(later.blocked, 0) as blocked, flow.pending + coalesce(later.pending, 0) as pending,
           flow.processing + coalesce(later.processing, 0) as processing,
           flow.completed + coalesce(later.completed, 0) as completed, flow.dead + coalesce(later.dead, 0) as dead,
           flow.discarded + coalesce(later.discarded, 0) as discarded,
           flow.cancelled + coalesce(later.cancelled, 0) as cancelled
    from flow
    cross join lateral (
      select sum(total) as total, sum(blocked) as blocked, sum(pending) as pending, sum(processing) as processing,
             sum(completed) as completed, sum(dead) as dead, sum(discarded) as discarded, sum(cancelled) as cancelled
      from flow_ledger where flow_ledger.flow = flow.id
    ) as later
    where flow.id = p_id
  ) as counted
$$;

-- The list of Workers of the release before. Remove it with the next release.
create or replace function list_flows(p_before uuid, p_limit int) returns setof jsonb
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select find_flow(id)
  from (select id from flow where p_before is null or id < p_before order by id desc limit p_limit) as page
  order by id desc
$$;

-- The jobs of a flow by their ids: first those of the call, then continuations. p_after: the last id of the page before.
create or replace function ids_of_flow(p_flow uuid, p_after uuid default null, p_limit int default null) returns uuid[]
language plpgsql stable as $$
declare
  -- Read first, so that both ends of the range of ids are known when the plan is made: a join reads all jobs from the oldest on.
  v_last_id uuid := (select last_id from flow where id = p_flow);
  v_after   uuid := greatest(p_after, p_flow);
begin
  return array(
    select id from (
      (select id from job where id > v_after and id <= v_last_id and flow = p_flow order by id limit p_limit)
      union
      (select id from chain_job
       where chain > p_flow and chain <= v_last_id and (p_after is null or id > p_after) order by id limit p_limit)
    ) as members
    order by id limit p_limit);
end $$;

-- Cancels all pending and blocked jobs of a flow. What is leased may finish; what it continues with is cancelled. Answers how many
-- were cancelled, { cancelled }; null: there is no such flow.
--
-- It locks the flow's row, so two of them run one after the other, and then the jobs' rows as a cancel of one job does: `scheduled`
-- before `ready`, each in the order of the ids, then `blocked`. A job that is released or put back meanwhile is met by the next
-- look: a settle that goes on in a chain waits for nobody here, and its successor is cancelled by itself (continue.sql). If the
-- two are open at the same time, neither sees the other. Then the claim that meets the successor cancels it (cancel_strays).
create or replace function cancel_flow(p_actor text, p_id uuid) returns jsonb
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  c_looks     constant int := 5;
  v_ids       uuid[];
  v_cancelled int := 0;
  v_some      int;
begin
  perform from flow where id = p_id for no key update;
  if not found then
    return null;
  end if;
  update flow set cancelled_at = now() where id = p_id and cancelled_at is null;
  for look in 1 .. c_looks loop
    v_ids := ids_of_flow(p_id);
    v_some := cancel_pending(v_ids) + cancel_blocked(v_ids);
    exit when v_some = 0;
    v_cancelled := v_cancelled + v_some;
  end loop;
  perform write_audit(p_actor, 'cancel flow', 'flow ' || p_id, null, jsonb_build_object('cancelled', v_cancelled));
  return jsonb_build_object('cancelled', v_cancelled);
end $$;

-- Of jobs that a claim has locked: cancels the successors that were enqueued while their flow was being cancelled. One that was
-- attempted before, or that somebody has replayed since, goes on. Answers whether there were any.
create or replace function cancel_strays(p_linked linked_job[]) returns boolean
language plpgsql as $$
declare
  v_ids uuid[] := array(
    select linked.id
    from unnest(p_linked) as linked
    join flow on flow.id = linked.flow and flow.cancelled_at is not null
    join job on job.id = linked.id and job.chain_index is not null
    where not exists (select from failed_attempt where failed_attempt.id = linked.id)
    order by linked.id);
begin
  return v_ids <> '{}' and cancel_pending(v_ids) > 0;
end $$;

-- p_superseded_by: the jobs that replace these, in the same order.
create or replace function cancel_pending(p_ids uuid[], p_superseded_by uuid[] default null) returns int
language plpgsql as $$
declare
  v_ids   uuid[];
  v_turns held_turn[];
begin
  perform from scheduled where id = any(p_ids) order by id for update;
  perform from ready where id = any(p_ids) order by id for update;
  with from_scheduled as (
    delete from scheduled where id = any(p_ids) returning id, lane, attempt, abandonments, key, place
  ),
  from_ready as (
    delete from ready where id = any(p_ids) returning id, lane, attempt, abandonments, key, place
  ),
  gone as materialized (
    select *, 1 as scheduled from from_scheduled union all select *, 0 from from_ready
  ),
  closed as (
    insert into closed (id, status, closed_at, lane, attempt, abandonments, superseded_by)
    select id, 'cancelled', now(), abs(lane), attempt, abandonments, p_superseded_by[array_position(p_ids, id)] from gone
  ),
  booked as (
    insert into ledger (lane, pending, scheduled, cancelled)
    select abs(lane), -count(*), -sum(scheduled), count(*) from gone group by abs(lane)
  )
  select array_agg(id), array_agg(row(lane, key, place)::held_turn) filter (where place is not null)
  into v_ids, v_turns from gone;
  perform return_held_turns(v_turns);
  perform note_moves(v_ids, 'pending', 'cancelled');
  return coalesce(cardinality(v_ids), 0);
end $$;

create or replace function cancel_blocked(p_ids uuid[]) returns int
language plpgsql as $$
declare
  v_ids uuid[];
begin
  v_ids := array(select id from blocked where id = any(p_ids) order by id for update);
  perform close_blocked(id, 'cancelled') from unnest(v_ids) as id;
  return cardinality(v_ids);
end $$;

-- Removes a flow that has ended: `deleted`. Otherwise: `running`; `waited_for`, if a job outside waits for one of its jobs; null,
-- if there is no such flow. The books keep their counts.
--
-- Locks: the flow's row, then dead jobs in the order of their ids, as a replay does. An edge to one of its jobs that is written
-- meanwhile is judged after this: the job is gone, so it counts as completed.
create or replace function delete_flow(p_actor text, p_id uuid) returns text
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_flow flow%rowtype;
  v_ids  uuid[];
begin
  select * into v_flow from flow where id = p_id for update;
  if not found then
    return null;
  elsif find_flow(p_id) ->> 'status' = 'running' then
    return 'running';
  end if;
  v_ids := ids_of_flow(p_id);
  if exists (select from edge join blocked using (wait) where edge.blocker = any(v_ids)) then
    return 'waited_for';
  end if;
  perform from closed where id = any(v_ids) order by id for update;
  if find_flow(p_id) ->> 'status' = 'running' then -- a replay was faster
    return 'running';
  end if;
  perform return_held_turns(array(
    select row(lane, key, place)::held_turn from closed where id = any(v_ids) and key is not null));
  delete from closed where id = any(v_ids);
  perform remove_from_done(v_ids);
  perform forget_jobs(v_ids);
  -- Somebody may have begun to wait since the look above. That edge stays: a blocker that is gone counts as completed.
  delete from edge where blocker = any(v_ids) and not exists (select from blocked where blocked.wait = edge.wait);
  perform write_audit(p_actor, 'delete flow', 'flow ' || p_id, find_flow(p_id), null);
  delete from flow_ledger where flow = p_id;
  delete from flow where id = p_id;
  return 'deleted';
end $$;

-- Takes jobs out of the packed rows of `done`. A row of which some are left is written anew.
create or replace function remove_from_done(p_ids uuid[]) returns void
language plpgsql as $$
begin
  with bucket as materialized (
    select distinct (left(id::text, 8) || repeat('0', 24))::uuid as low, end_of_bucket(id) as high from unnest(p_ids) as id
  ),
  removed as (
    delete from done using bucket
    where hi_id >= bucket.low and hi_id <= bucket.high and ids && p_ids
    returning done.*
  ),
  kept as (
    select started_at, finished_at, lane, worker, array_agg(entry.id order by entry.id) as ids,
           case when count(entry.attempt) > 0 then array_agg(coalesce(entry.attempt, 1::smallint) order by entry.id) end as attempts
    from (select row_number() over () as number, * from removed) as packed
    cross join lateral unnest(packed.ids, packed.attempts) as entry(id, attempt)
    where entry.id <> all(p_ids)
    group by number, started_at, finished_at, lane, worker
  )
  insert into done (hi_id, lo_id, started_at, finished_at, lane, ids, attempts, worker)
  select ids[cardinality(ids)], ids[1], started_at, finished_at, lane, ids, attempts, worker from kept;
end $$;

-- Flows whose jobs were pruned, and old signals. It walks over some of the old flows in each call, by their ids: those with jobs that
-- are kept longer have to stay, and may be many. The caller holds the lock of the partitions, so only one of these runs at a time.
create or replace function prune_flows(p_limit int, p_keep interval) returns void
language plpgsql as $$
declare
  v_from uuid := id_of_halves(coalesce((select page from sweep where table_name = 'flow'), 0), -1);
  v_ids  uuid[] := array(select id from flow where id > v_from and id < id_at(now() - p_keep) order by id limit p_limit);
begin
  delete from flow
  where id = any(array(
    select id from flow as old
    where id = any(v_ids)
      and not exists (select from job where job.id > old.id and job.id <= old.last_id)
      and not exists (select from chain_job where chain > old.id and chain <= old.last_id)
    for update skip locked));
  -- after the last it begins again
  insert into sweep (table_name, page) values ('flow', case when cardinality(v_ids) = p_limit then high_of(v_ids[p_limit]) else 0 end)
  on conflict (table_name) do update set page = excluded.page;
  delete from signal
  where id = any(array(select id from signal where sent_at <= now() - p_keep order by sent_at limit p_limit));
end $$;
