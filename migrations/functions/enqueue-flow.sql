-- enqueue_flow: up to a thousand jobs that wait for each other, all or none. Each has a `ref`, and `after` names blockers by their
-- refs or as { job_id }. The ids of a flow's jobs follow its own id. `flow_id` is null if all jobs were there already, by their
-- idempotency keys.
create or replace function enqueue_flow(p_jobs jsonb) returns jsonb
language plpgsql
security definer
set search_path from current
as $$
declare
  v_refs    text[] := array(select job ->> 'ref' from jsonb_array_elements(p_jobs) with ordinality as list(job, number)
                            order by number);
  v_fault   text := fault_of_refs(v_refs);
  v_jobs    new_job[];
  v_answers jsonb;
  v_flow    uuid;
begin
  if v_fault is null then
    v_jobs := read_jobs(p_jobs);
    v_fault := (select outside_fault_of(job) from unnest(v_jobs) as job where outside_fault_of(job) is not null limit 1);
  end if;
  if v_fault is not null then
    perform refuse(v_fault);
  end if;
  select jsonb_agg(jsonb_build_object('ref', v_refs[number], 'id', id, 'status', status, 'deduplicated', deduplicated)
                   order by number),
         (array_agg(id order by id desc) filter (where not deduplicated))[1]
  into v_answers, v_flow
  from insert_jobs(v_jobs, v_refs) with ordinality as job(id, status, scheduled_at, deduplicated, number);
  return jsonb_build_object('flow_id', (select flow from job where id = v_flow), 'jobs', v_answers);
end $$;

create or replace function fault_of_refs(p_refs text[]) returns text
language plpgsql as $$
begin
  return case
    when cardinality(p_refs) not between 1 and 1000 then 'jobs: must be 1 to 1,000'
    when array_position(p_refs, null) is not null then 'ref: every job of a flow needs one'
    when exists (select from unnest(p_refs) as ref where length(ref) not between 1 and 255)
      then 'ref: must have 1 to 255 characters'
    else (select format('ref: "%s" is used twice', ref) from unnest(p_refs) as ref group by ref having count(*) > 1 limit 1) end;
end $$;

-- A flow of the jobs that were just written; or, without it, the flows of continuations. Jobs that were there before, by their
-- idempotency keys, do not belong to the flow.
create or replace function count_in_flows(p_flow uuid, p_last uuid, p_flows uuid[]) returns void
language plpgsql as $$
begin
  if p_flow is null then
    insert into flow_ledger (flow, total, pending)
    select flow, count(*), count(*) from unnest(p_flows) as flow where flow is not null group by flow;
    return;
  end if;
  insert into flow (id, last_id, total, blocked, pending)
  select p_flow, p_last, count(*), count(waits), count(*) - count(waits) from job where id > p_flow and id <= p_last
  having count(*) > 0;
end $$;
