-- checkpoint: stores what durable steps of running jobs have returned. Like a settle it is fenced: it applies only while a
-- lease with the given key holds the job. The first value of a name wins, so it can be repeated. It also keeps the lease
-- alive, and says whether somebody asked to cancel the job.

-- `p_steps` has a list for each job, in the order of the ids: [{ name, value, took_ms? }, …]. A step { name, seconds } is a sleep:
-- its value becomes the time when it is over. The answer has an entry for each job: null if its lease is lost, otherwise
-- { cancel_requested, steps: { name: value } } with the sleeps, and the steps that were stored before.
--
-- Locks: the lease rows that hold the jobs, in the order in which lock_leases takes them. Whoever ends such a lease waits, or
-- made us wait. So what is stored here is committed before another claim of the job can read its steps. As in lock_leases, the
-- look is repeated because an extend may have replaced a row. The next statement has a fresh snapshot.
create or replace function checkpoints(p_ids uuid[], p_keys uuid[], p_steps jsonb, p_seconds float8) returns jsonb
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_locked   tid[];
  v_deadline timestamptz;
  v_answer   jsonb;
begin
  loop
    select coalesce(array_agg(tid), '{}'), min(deadline) into v_locked, v_deadline
    from (
      select ctid as tid, deadline from lease where key = any(p_keys) and ids && p_ids order by key, lock_order for update
    ) as held;
    exit when not exists (select from lease where key = any(p_keys) and ids && p_ids and ctid <> all(v_locked));
  end loop;

  with held as materialized (
    select request.id, request.place
    from unnest(p_ids, p_keys) with ordinality as request(id, key, place)
    where exists (select from lease where lease.key = request.key and request.id = any(lease.ids))
  ),
  step as materialized (
    select held.id, held.place, given.name, given.seconds,
           coalesce(to_jsonb(round(date_part('epoch', clock_timestamp()) * 1000 + given.seconds * 1000)),
                    given.value, 'null') as value,
           case when given.seconds is not null then -greatest(1, given.seconds * 1000)
                when given.took_ms is not null then greatest(0, given.took_ms) end as took_ms
    from held
    cross join lateral jsonb_to_recordset(p_steps -> (held.place - 1)::int)
      as given(name text, value jsonb, seconds float8, took_ms float8)
  ),
  before as materialized ( -- the primary key
    select step.id, step.name, checkpoint.value from step join checkpoint using (id, name)
  ),
  stored as ( -- only the holder of the lease writes, so there is nobody to conflict with
    insert into checkpoint (id, name, value, stored_at, took_ms)
    select distinct on (id, name) id, name, value, clock_timestamp(), took_ms from step
    where not exists (select from before where before.id = step.id and before.name = step.name)
  ),
  told as (
    select step.id, jsonb_object_agg(step.name, coalesce(before.value, step.value)) as steps
    from step left join before using (id, name)
    where step.seconds is not null or before.id is not null
    group by step.id
  )
  select jsonb_agg(case when held.id is not null then jsonb_build_object(
                     'cancel_requested', exists (select from cancel_request where cancel_request.id = held.id),
                     'steps', coalesce(told.steps, '{}')) end
                   order by request.place)
  into v_answer
  from unnest(p_ids) with ordinality as request(id, place)
  left join held using (place)
  left join told on told.id = held.id;

  -- A drain extends its leases earlier than this, all with one statement.
  if v_deadline < clock_timestamp() + make_interval(secs => p_seconds / 2) then
    perform extend(p_ids, p_keys, p_seconds);
  end if;
  return v_answer;
end $$;

-- Stores steps of one job. Null: the lease is lost.
create or replace function checkpoint(job_id uuid, lease_key uuid, steps jsonb, seconds float8 default 300) returns jsonb
language sql
security definer
set search_path from current
as $$
  select nullif(checkpoints(array[job_id], array[lease_key], jsonb_build_array(steps), seconds) -> 0, 'null')
$$;

-- The stored steps of these jobs: { id: { name: value, … }, … }, without the jobs that have none. Jobs that do not fit into
-- `p_max_bytes` have null and are read by another call.
create or replace function steps_of(p_ids uuid[], p_max_bytes bigint default null) returns jsonb
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select jsonb_object_agg(id, case when p_max_bytes is null or bytes_so_far <= p_max_bytes then steps end)
  from (
    select id, jsonb_object_agg(name, value) as steps,
           sum(sum(octet_length(name) + pg_column_size(value))) over (order by id) as bytes_so_far
    from checkpoint
    where id = any(p_ids)
    group by id
  ) as job
$$;

-- The stored steps of one job for people, oldest first, at most 1,000: [{ name, value?, stored_at, took_ms }, …]. Values that do
-- not fit into `p_max_bytes` together are left out. `stored_at` is in milliseconds since 1970, and null for old rows.
create or replace function step_list(p_id uuid, p_max_bytes bigint default 262144) returns jsonb
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select coalesce(jsonb_agg(jsonb_build_object('name', name, 'stored_at', date_part('epoch', stored_at) * 1000, 'took_ms', took_ms)
                            || case when bytes_so_far <= p_max_bytes then jsonb_build_object('value', value) else '{}' end
                            order by stored_at nulls first, name), '[]')
  from (
    select name, value, stored_at, took_ms,
           sum(pg_column_size(value)) over (order by stored_at nulls first, name) as bytes_so_far
    from checkpoint
    where id = p_id
    order by stored_at nulls first, name
    limit 1000
  ) as step
$$;
