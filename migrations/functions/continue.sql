-- continue: the jobs that come next in their chains. A chain is named by its first job; chain_job lists the others. The settle
-- that completes a job enqueues its successor, so both happen or neither, and a repeated settle holds nothing and continues
-- nothing. All of this runs after the statement that took the jobs out of their leases. The row of the lease is the lock: no
-- other settle continues the same job, and whoever judges an edge to the chain (judge-edges.sql) looks again or sees what is
-- written here.

-- One job, as a step of a chain has it. The short way, for a successor that insert_uniform can store: half of a step was spent in
-- statements that such a job does not need.
create or replace function continue_job(p_id uuid, p_next jsonb) returns void
language plpgsql as $$
declare
  c_plain constant text[] := '{type,payload,queue,priority,max_attempts,partition_key,fair_key,traceparent}';
  v_chain uuid;
  v_index int;
  v_flow  uuid;
  v_id    uuid;
begin
  if p_next - c_plain <> '{}' then
    perform continue_jobs(array[p_id], array[p_next]);
    return;
  end if;
  select coalesce(chain, id), coalesce(chain_index, 0) + 1, flow into v_chain, v_index, v_flow from job where id = p_id;
  insert into chain_job (chain, index, id)
  values (v_chain, v_index, (insert_uniform(
    make_job(p_next ->> 'type', queue => p_next ->> 'queue', priority => (p_next ->> 'priority')::int,
             max_attempts => (p_next ->> 'max_attempts')::int, partition_key => p_next ->> 'partition_key',
             fair_key => p_next ->> 'fair_key', traceparent => p_next ->> 'traceparent'),
    jsonb_build_array(coalesce(nullif(p_next -> 'payload', 'null'), '{}')), v_chain, v_index, v_flow))[1])
  returning id into v_id;
  if v_flow is not null then
    insert into flow_ledger (flow, total, pending, processing, completed) values (v_flow, 1, 1, -1, 1);
    perform cancel(v_id) from flow where id = v_flow and cancelled_at is not null; -- nothing follows in a cancelled flow
  end if;
end $$;

-- The long way, for any jobs. The ids are in their order.
create or replace function continue_jobs(p_ids uuid[], p_next jsonb[]) returns void
language plpgsql as $$
declare
  v_new     new_job[];
  v_chains  uuid[];
  v_indexes int[];
  v_flows   uuid[];
  v_stopped uuid[];
begin
  if p_ids is null then
    return;
  end if;
  perform note_moves(p_ids, 'processing', 'completed', true);
  select array_agg(new order by done.id), array_agg(coalesce(job.chain, job.id) order by done.id),
         array_agg(coalesce(job.chain_index, 0) + 1 order by done.id), array_agg(job.flow order by done.id)
  into v_new, v_chains, v_indexes, v_flows
  from unnest(p_ids, p_next) as done(id, next)
  join job on job.id = done.id and job.id = any(p_ids) and job.id >= p_ids[1] and job.id <= p_ids[cardinality(p_ids)]
  cross join lateral (select jsonb_populate_record(null::new_job, done.next) as new offset 0) as successor;
  perform refuse('next: must not have after or an idempotency_key')
  from unnest(v_new) where after is not null or idempotency_key is not null;
  with written as materialized (
    select id, number from insert_jobs(v_new, null, v_chains, v_indexes, v_flows) with ordinality
      as new(id, status, scheduled_at, deduplicated, outcome, replaced_id, number)
  ),
  linked as (
    insert into chain_job (chain, index, id) select v_chains[number], v_indexes[number], id from written
  )
  select array_agg(written.id) into v_stopped
  from written join flow on flow.id = v_flows[number] and flow.cancelled_at is not null;
  perform cancel(id) from unnest(v_stopped) as id; -- nothing follows in a flow that was cancelled
end $$;
