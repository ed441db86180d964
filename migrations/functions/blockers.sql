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
declare
  v_last    uuid[];
  v_pending uuid[];
  v_blocked uuid[];
  v_leased  uuid[];
begin
  -- The chains first: most blockers are named by their chains, and then have no row here.
  v_last := last_jobs(array(
    select coalesce(job.chain, entry.id)
    from unnest(p_ids) with ordinality as entry(id, number)
    left join (select id, chain from job where id = any(p_ids) and chain <> id) as job using (id)
    order by number));
  v_pending := array(select id from ready where id = any(v_last)) || array(select id from scheduled where id = any(v_last));
  v_blocked := array(select id from blocked where id = any(v_last));
  v_leased := array(select id from lease cross join lateral unnest(ids) as id
                    where deadline > now() - interval '1 hour' and ids && v_last and id = any(v_last));
  return coalesce((
    select jsonb_agg(jsonb_build_object('job_id', entry.id, 'output', output.output, 'status', coalesce(
             closed.status,
             case when entry.last = any(v_pending) then 'pending'
                  when entry.last = any(v_blocked) then 'blocked'
                  when entry.last = any(v_leased) then 'processing'
                  else 'completed' end)) order by number)
    from unnest(p_ids, v_last) with ordinality as entry(id, last, number)
    left join (select id, status from closed where id = any(v_last)) as closed on closed.id = entry.last
    left join (select id, output from output where id = any(v_last)) as output on output.id = entry.last), '[]');
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
  v_before   int := 0; -- blockers in the slots before
  v_blockers jsonb := '{}';
begin
  select * into v_of from dependency where id = p_id;
  if not found then
    return null;
  end if;
  for n in 1 .. cardinality(v_of.slots) loop
    v_blockers := v_blockers || jsonb_build_object(v_of.slots[n], outcomes_of(
      v_of.blockers[greatest(v_before, p_from) + 1 : least(v_before + v_of.sizes[n], p_from + p_limit)]));
    v_before := v_before + v_of.sizes[n];
  end loop;
  return v_blockers;
end $$;

-- Whether note_linked_taken and cancel_strays have something to do: some of these jobs are of a flow, have waited, or come from a
-- schedule. Not so a step of a chain. Plain jobs would pay for an aggregate in the statement that reads them.
create or replace function needs_note(p_linked linked_job[]) returns boolean
language plpgsql as $$
begin
  return exists (select from unnest(p_linked) where flow is not null or waits or schedule is not null);
end $$;

-- For a claim: counts linked jobs of flows as processing, and answers with the blockers of those that waited, { id: blockers }.
-- A job with more than 1,000 blockers, or whose blockers' outputs do not fit into what is left of the answer, has
-- { "too_large": true } instead: its handler asks by blockers_of.
create or replace function note_linked_taken(p_linked linked_job[], inout bytes_left bigint, out blockers jsonb, out schedules jsonb)
language plpgsql as $$
declare
  c_most     constant int := 1000;
  v_id       uuid;
  v_blockers jsonb;
  v_bytes    int;
begin
  insert into flow_ledger (flow, pending, processing)
  select flow, -count(*), count(*) from unnest(p_linked) where flow is not null group by flow;
  for v_id in select id from unnest(p_linked) where waits loop
    v_blockers := case when (select cardinality(dependency.blockers) from dependency where id = v_id) <= c_most
                       then blockers_of(v_id) end;
    v_bytes := payload_bytes(v_blockers);
    if v_bytes is null or v_bytes > bytes_left then
      v_blockers := jsonb_build_object('too_large', true);
      v_bytes := 0;
    end if;
    bytes_left := bytes_left - v_bytes;
    blockers := coalesce(blockers, '{}') || jsonb_build_object(v_id, v_blockers);
  end loop;
  select jsonb_object_agg(id, schedule) into schedules from unnest(p_linked) where schedule is not null;
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
