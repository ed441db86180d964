-- links: what a move of jobs means for others. A job is linked if it was enqueued with jobs that wait for it, if it continues a
-- chain, or if it belongs to a flow (job.chain is not null). Others may wait for any other job too: its chain has its id. Every way of a job from one state to another calls note_moves, after the statement
-- that locked or removed the row in which the job was. That row is the lock between who ends a job and who judges a new edge to
-- it (judge-edges.sql): a new statement sees the edges that were judged before.

-- An id as two numbers, for ready.returned.
create or replace function high_of(id uuid) returns bigint
language sql immutable
return ('x' || left(replace(id::text, '-', ''), 16))::bit(64)::bigint;

create or replace function low_of(id uuid) returns bigint
language sql immutable
return ('x' || right(replace(id::text, '-', ''), 16))::bit(64)::bigint;

create or replace function id_of_halves(high bigint, low bigint) returns uuid
language sql immutable
return (lpad(to_hex(high), 16, '0') || lpad(to_hex(low), 16, '0'))::uuid;

-- These jobs were moved by the caller. Statuses are those of the API. p_goes_on: they are completed and have successors, so
-- their chains have not ended.
create or replace function note_moves(p_ids uuid[], p_from text, p_to text, p_goes_on boolean default false) returns void
language plpgsql as $$
declare
  v_ids    uuid[] := array(select unnest(p_ids) order by 1); -- the bounds name the partitions
  v_chains uuid[];
begin
  if v_ids = '{}' then
    return;
  end if;
  with moved as materialized (
    select coalesce(chain, id) as chain, flow from job
    where id = any(v_ids) and id >= v_ids[1] and id <= v_ids[cardinality(v_ids)]
  ),
  noted as (
    insert into flow_ledger (flow, blocked, pending, processing, completed, dead, discarded, cancelled)
    select flow,
           nullif(((p_to = 'blocked')::int - coalesce((p_from = 'blocked')::int, 0)) * jobs, 0),
           nullif(((p_to = 'pending')::int - coalesce((p_from = 'pending')::int, 0)) * jobs, 0),
           nullif(((p_to = 'processing')::int - coalesce((p_from = 'processing')::int, 0)) * jobs, 0),
           nullif(((p_to = 'completed')::int - coalesce((p_from = 'completed')::int, 0)) * jobs, 0),
           nullif(((p_to = 'dead')::int - coalesce((p_from = 'dead')::int, 0)) * jobs, 0),
           nullif(((p_to = 'discarded')::int - coalesce((p_from = 'discarded')::int, 0)) * jobs, 0),
           nullif(((p_to = 'cancelled')::int - coalesce((p_from = 'cancelled')::int, 0)) * jobs, 0)
    from (select flow, count(*) as jobs from moved where flow is not null group by flow) as counted
  )
  select array_agg(chain) into v_chains from moved;
  if v_chains is not null and p_to not in ('blocked', 'pending', 'processing') and not p_goes_on then
    perform end_chains(v_chains, p_to = 'completed');
  end if;
end $$;

-- Cuts the edges that lead from these chains. An edge of a job that dies with a bad end stays: the resolver judges it, since the
-- blocker may be replayed before.
create or replace function end_chains(p_chains uuid[], p_is_good boolean) returns void
language plpgsql as $$
declare
  v_events end_event[];
begin
  with cut as (
    delete from edge where blocker = any(p_chains) and (p_is_good or not dies) returning lane, wait
  )
  select array_agg(row(lane, wait, jobs, null)::end_event) into v_events
  from (select lane, wait, count(*) as jobs from cut group by lane, wait) as counted;
  if not p_is_good then
    v_events := v_events || array(
      select row(lane, wait, 0, blocker)::end_event from edge where blocker = any(p_chains) and dies);
  end if;
  perform append_ends(v_events);
end $$;

-- Writes events. They have ids of their own: an id of a job would be found by whoever looks for the job.
create or replace function append_ends(p_events end_event[]) returns void
language plpgsql as $$
declare
  c_entries constant int := 50; -- in one row: Postgres keeps larger rows elsewhere
begin
  if p_events is null then
    return;
  end if;
  insert into ready (seq, id, lane, returned)
  select nextval('ready_seq'), new_id(), lane,
         array_agg(wait) || array_agg(number::bigint)
         || array_agg(case when id is null then 0 else high_of(id) end)
         || array_agg(case when id is null then 0 else low_of(id) end)
  from (
    select *, (row_number() over (partition by lane) - 1) / c_entries as part from unnest(p_events)
  ) as numbered
  group by lane, part;
end $$;
