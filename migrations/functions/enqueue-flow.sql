-- enqueue_flow: up to a thousand jobs that wait for each other, all or none. Each has a `ref`, and `after` names blockers by their
-- refs or as { job_id }. The ids of a flow's jobs follow its own id. A second call with the same p_key and the same jobs answers
-- with the first flow: { flow_id, deduplicated, jobs: [{ ref, id, status }, …] }.
create or replace function enqueue_flow(p_jobs jsonb, p_key text default null) returns jsonb
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
  v_flow := flow_of_key(p_key, p_jobs);
  if v_flow is not null then
    return jsonb_build_object('flow_id', v_flow, 'deduplicated', true, 'jobs', answer_again(v_flow, v_jobs, v_refs));
  end if;
  select jsonb_agg(jsonb_build_object('ref', v_refs[number], 'id', id, 'status', status) order by number),
         (array_agg(id order by id desc) filter (where not deduplicated))[1]
  into v_answers, v_flow
  from insert_jobs(v_jobs, v_refs) with ordinality as job(id, status, scheduled_at, deduplicated, outcome, replaced_id, number);
  v_flow := case when v_flow is not null then (select flow from job where id = v_flow)
                 -- all jobs were there already, by their keys: the flow has none
                 else (select id from flow where xmin = pg_current_xact_id()::xid order by id desc limit 1) end;
  update idempotency set id = v_flow where key_hash = key_hash_of('flow ' || p_key);
  return jsonb_build_object('flow_id', v_flow, 'deduplicated', false, 'jobs', v_answers);
end $$;

-- Reserves the key of a flow. Answers the flow that has it already. Two calls with one key: the unique index makes the second wait
-- in its insert until the first has ended, as in reserve_keys.
create or replace function flow_of_key(p_key text, p_jobs jsonb) returns uuid
language plpgsql as $$
declare
  v_hash        uuid := key_hash_of('flow ' || p_key);
  v_fingerprint bigint := hashtextextended(p_jobs::text, 0);
  v_used        idempotency%rowtype;
begin
  if p_key is null then
    return null;
  end if;
  insert into idempotency as used (key_hash, id, fingerprint, expires_at)
  values (v_hash, new_id(), v_fingerprint, now() + interval '7 days')
  on conflict (key_hash) do update
  set id = excluded.id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
  where used.expires_at <= now();
  if found then
    return null;
  end if;
  select * into v_used from idempotency where key_hash = v_hash;
  if v_used.fingerprint <> v_fingerprint then
    raise exception using errcode = 'SL422', message = format('the idempotency key "%s" was used for another request', p_key);
  end if;
  return v_used.id;
end $$;

-- The jobs of a flow that was made before by the same call. A job whose own key was in use then is not in the flow.
create or replace function answer_again(p_flow uuid, p_jobs new_job[], p_refs text[]) returns jsonb
language plpgsql stable as $$
declare
  v_stem text := left(p_flow::text, 36 - length(to_hex(cardinality(p_jobs))));
begin
  return (
    select jsonb_agg(jsonb_build_object('ref', p_refs[number], 'id', owner.id,
                                        'status', coalesce((select status from find_job(owner.id)), 'completed')) order by number)
    from unnest(p_jobs) with ordinality as job
    cross join lateral (
      select coalesce(owner_of_key(job.idempotency_key), numbered_id(v_stem, ordinality)) as id, ordinality as number
    ) as owner);
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
