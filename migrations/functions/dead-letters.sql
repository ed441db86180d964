-- Dead letters: jobs that died and that nobody has replayed or discarded yet. Each change is in the audit.

-- The oldest of a type, and of a reason if one is given, up to a count: what a replay of many would take.
create or replace function dead_letters_of(p_type text, p_reason text, p_count int) returns setof closed
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select *
  from closed
  where status = 'dead'
    and lane = any(array(select lane.lane from lane where lane.type = p_type))
    and (p_reason is null or reason = p_reason)
  order by id
  limit p_count
$$;

-- As the audit shows it; null: the job is not dead. Whoever replays or discards it at the same time waits here.
create or replace function lock_dead_letter(p_id uuid) returns jsonb
language sql as $$
  select jsonb_build_object('status', status, 'dead_reason', reason, 'attempts', attempt)
  from closed
  where id = p_id and status = 'dead'
  for update
$$;

-- False: the job is not dead. An edited payload is audited as it was and as it is.
create or replace function replay_as(p_actor text, p_id uuid, p_payload jsonb) returns boolean
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_before jsonb := lock_dead_letter(p_id);
begin
  if v_before is null then
    return false;
  end if;
  if p_payload is not null then
    v_before := v_before || (select jsonb_build_object('payload', payload) from job where id = p_id);
  end if;
  perform replay(array[p_id], p_payload);
  perform write_audit(p_actor, 'replay', 'job ' || p_id, v_before,
    jsonb_build_object('status', 'pending', 'attempts', 0)
    || case when p_payload is null then '{}' else jsonb_build_object('payload', p_payload) end);
  return true;
end $$;

-- How many came back in each queue. One row of the audit names them all.
create or replace function replay_many_as(
  p_actor text, p_type text, p_reason text, p_count int, p_seconds_apart float8 default 0
)
returns table (queue text, replayed bigint)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_ids uuid[] := array(
    select id
    from replay(array(select id from dead_letters_of(p_type, p_reason, p_count)), null, p_seconds_apart) as id
    order by id);
begin
  perform write_audit(p_actor, 'replay many', 'type ' || p_type,
    jsonb_build_object('status', 'dead', 'dead_reason', p_reason),
    jsonb_build_object('status', 'pending', 'replayed', cardinality(v_ids), 'ids', to_jsonb(v_ids)));
  return query
    select lane.queue, count(*)
    from job join lane using (lane)
    where job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)]
    group by lane.queue;
end $$;

-- False: the job is not dead. Why it was discarded is kept in the audit alone.
create or replace function discard_as(p_actor text, p_id uuid, p_reason text) returns boolean
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_before jsonb := lock_dead_letter(p_id);
begin
  if v_before is null then
    return false;
  end if;
  perform discard(array[p_id]);
  perform write_audit(p_actor, 'discard', 'job ' || p_id, v_before,
                      jsonb_build_object('status', 'discarded', 'reason', p_reason));
  return true;
end $$;
