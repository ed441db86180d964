-- insert_uniform: the short way of an enqueue, for jobs that differ only in their payloads and are due at once. Such jobs
-- have the same key, if they have one; then they wait under the negative number of their lane (dispatch.sql). Nearly
-- every call is one of these. A statement's start-up time grows with its parts, and for a few jobs it is longer than the
-- writing: insert_jobs has all the parts, this function has the fewest.

-- Returns the ids in the order of the payloads. The last three are of a single job that continues a chain (continue.sql).
create or replace function insert_uniform(
  p_job new_job, p_payloads jsonb, p_chain uuid default null, p_index int default null, p_flow uuid default null
) returns uuid[]
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_jobs  int := coalesce(jsonb_array_length(p_payloads), 0);
  v_stem  text := id_stem(v_jobs);
  -- Only the options that a plain job can have: the checks of the others are left out when this is planned.
  v_fault text := fault_of(make_job(p_job.type, priority => p_job.priority, max_attempts => p_job.max_attempts,
                                    partition_key => p_job.partition_key, fair_key => p_job.fair_key));
  v_trace text;
  v_kind  text := kind_of(p_job.partition_key, p_job.fair_key);
  v_lane  int;
  v_line  int; -- the lane, or its negative number
  v_key   bigint;
  v_ids   uuid[];
begin
  if v_fault is not null then
    perform refuse(v_fault);
  elsif v_jobs = 0 then
    return '{}';
  end if;
  if p_job.traceparent is not null then -- setting the check up costs 5 % of an enqueue
    v_trace := traceparent_of(p_job.traceparent);
  end if;
  v_lane := lane_of(coalesce(p_job.queue, 'default'), p_job.type, coalesce(p_job.priority, 5::smallint), p_kind => v_kind);
  v_line := case when v_kind = 'plain' then v_lane else -v_lane end;
  v_key := key_of_job(coalesce(p_job.queue, 'default'), p_job.partition_key, p_job.fair_key);

  if v_jobs = 1 and payload_fault_of(p_payloads->0) is null then
    -- The same as below: rows of values start in half the time.
    v_ids := array[numbered_id(v_stem, 1)];
    with written as (
      insert into job (id, lane, max_attempts, partition_key, fair_key, traceparent, payload, chain, chain_index, flow)
      values (v_ids[1], v_lane, coalesce(p_job.max_attempts, 5::smallint), p_job.partition_key, p_job.fair_key, v_trace,
              p_payloads->0, p_chain, p_index, p_flow)
    ),
    readied as (
      insert into ready (seq, id, lane, key) values (nextval('ready_seq'), v_ids[1], v_line, v_key)
    )
    insert into ledger (lane, enqueued, pending) values (v_lane, 1, 1);
    return v_ids;
  end if;

  with written as (
    insert into job (id, lane, max_attempts, partition_key, fair_key, traceparent, payload)
    select numbered_id(v_stem, new.number), v_lane, coalesce(p_job.max_attempts, 5::smallint),
           p_job.partition_key, p_job.fair_key, v_trace, new.payload
    from jsonb_array_elements(p_payloads) with ordinality as new(payload, number)
    where payload_fault_of(new.payload) is null
    returning id
  ),
  readied as (
    insert into ready (seq, id, lane, key) select nextval('ready_seq'), id, v_line, v_key from written
  ),
  booked as (
    insert into ledger (lane, enqueued, pending) values (v_lane, v_jobs, v_jobs)
  )
  select array_agg(id) into v_ids from written;
  if cardinality(v_ids) is distinct from v_jobs then
    perform refuse(payload_fault_of(payload))
    from jsonb_array_elements(p_payloads) as payload where payload_fault_of(payload) is not null;
  end if;
  return v_ids;
end $$;
