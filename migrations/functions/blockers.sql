-- blockers: what became of the jobs that others waited for.

-- [{ job_id, status, output }, …] in the order of the ids. `job_id` is as it was asked for; status and output are those of the last
-- job of its chain. A job that was pruned is completed.
create or replace function outcomes_of(p_ids uuid[]) returns jsonb
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object('job_id', entry.id, 'status', coalesce(state.status, 'completed'), 'output', state.output)
                     order by number)
    from unnest(p_ids) with ordinality as entry(id, number)
    cross join lateral (select last_of_chain(entry.id) as id) as last
    left join lateral (
      select case when exists (select from ready where ready.id = last.id)
                    or exists (select from scheduled where scheduled.id = last.id) then 'pending'
                  when exists (select from blocked where blocked.id = last.id) then 'blocked'
                  when closed.status is not null then closed.status
                  when exists (select from done where hi_id >= job.id and hi_id <= end_of_bucket(job.id) and lo_id <= job.id
                               and job.id = any(ids)) then 'completed'
                  else 'processing' end as status,
             (select output.output from output where output.id = job.id) as output
      from job left join closed on closed.id = job.id
      where job.id = last.id
      offset 0
    ) as state on true), '[]');
end $$;

create or replace function last_of_chain(p_id uuid) returns uuid
language sql stable as $$
  select coalesce((select id from chain_job
                   where chain_job.chain = coalesce((select chain from job where job.id = p_id), p_id)
                   order by index desc limit 1), p_id)
$$;

-- { slot: [{ job_id, status, output }, …] } of a job's blockers, from the place p_from on. Null: it has none.
create or replace function blockers_of(p_id uuid, p_from int default 0, p_limit int default 1000) returns jsonb
language plpgsql stable
security definer
set search_path from current
as $$
declare
  v_of       dependency%rowtype;
  v_outcomes jsonb;
begin
  select * into v_of from dependency where id = p_id;
  if not found then
    return null;
  end if;
  v_outcomes := outcomes_of(v_of.blockers[p_from + 1 : p_from + p_limit]);
  return (
    select coalesce(jsonb_object_agg(slot, coalesce(
      (select jsonb_agg(outcome order by n) from jsonb_array_elements(v_outcomes) with ordinality as list(outcome, n)
       where n + p_from > upto - size and n + p_from <= upto), '[]')), '{}')
    from (select slot, size, sum(size) over (order by number) as upto
          from unnest(v_of.slots, v_of.sizes) with ordinality as entry(slot, size, number)) as placed);
end $$;

-- For a claim: counts linked jobs of flows as processing, and answers with the blockers of those that waited, { id: blockers }.
-- A job with more than 1,000 blockers, or whose blockers' outputs do not fit into what is left of the answer, has
-- { "too_large": true } instead: its handler asks by blockers_of.
create or replace function note_linked_taken(p_linked linked_job[], p_bytes bigint) returns jsonb
language plpgsql as $$
declare
  c_most     constant int := 1000;
  v_job      linked_job;
  v_blockers jsonb;
  v_all      jsonb;
begin
  insert into flow_ledger (flow, pending, processing)
  select flow, -count(*), count(*) from unnest(p_linked) where flow is not null group by flow;
  foreach v_job in array p_linked loop
    continue when v_job.waits is not true;
    v_blockers := case when (select cardinality(blockers) from dependency where id = v_job.id) <= c_most
                       then blockers_of(v_job.id) end;
    if v_blockers is null or octet_length(v_blockers::text) > p_bytes then
      v_blockers := jsonb_build_object('too_large', true);
    end if;
    p_bytes := p_bytes - octet_length(v_blockers::text);
    v_all := coalesce(v_all, '{}') || jsonb_build_object(v_job.id, v_blockers);
  end loop;
  return v_all;
end $$;

-- The chain of a job, by any of its jobs: { chain_id, status, output, jobs }. Null: there is no such job.
create or replace function chain_of(p_id uuid) returns jsonb
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_chain uuid := coalesce((select chain from job where id = p_id), (select chain from chain_job where id = p_id), p_id);
  v_jobs  uuid[] := array(select id from chain_job where chain = v_chain order by index);
begin
  if v_jobs = '{}' and not exists (select from job where id = p_id) then
    return null;
  end if;
  return jsonb_build_object('chain_id', v_chain, 'jobs', to_jsonb(v_chain || v_jobs))
         || ((outcomes_of(array[v_chain]) -> 0) - 'job_id');
end $$;
