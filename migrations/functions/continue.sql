-- continue: the jobs that come next in their chains. A chain is named by its first job; chain_job lists the others. The settle
-- that completes a job enqueues its successor, so both happen or neither, and a repeated settle holds nothing and continues
-- nothing.
create or replace function continue_jobs(p_jobs settled_job[]) returns void
language plpgsql as $$
declare
  v_ids     uuid[] := array(select id from unnest(p_jobs) order by id);
  v_new     new_job[];
  v_chains  uuid[];
  v_indexes int[];
  v_flows   uuid[];
  v_stopped uuid[];
begin
  if v_ids = '{}' then
    return;
  end if;
  perform note_moves(v_ids, 'processing', 'completed', true);
  select array_agg(new order by done.id), array_agg(coalesce(job.chain, job.id) order by done.id),
         array_agg(coalesce(job.chain_index, 0) + 1 order by done.id), array_agg(job.flow order by done.id)
  into v_new, v_chains, v_indexes, v_flows
  from unnest(p_jobs) as done
  join job on job.id = done.id and job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)]
  cross join lateral (select jsonb_populate_record(null::new_job, done.more -> 'next') as new offset 0) as successor;
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
