-- enqueue: new jobs, one or many, in the caller's transaction. Three functions are called from outside:
--   enqueue(type, payload, …)            one job, for any SQL client
--   enqueue_many(type, payloads, …)      many jobs with the same options, fit for array(select … from my_table)
--   enqueue_jobs(jobs jsonb)             any batch, for the HTTP API
-- check.sql says what is refused, lanes.sql makes lanes, idempotency.sql reserves keys. The rows are written by
-- insert_uniform, the short way, or by insert_jobs, the long way.
--
-- A job's options are the fields of the type new_job. test/sql/job-options.test.ts compares them with the arguments here,
-- with the HTTP API and with the TypeScript types.

-- A new job, made from named arguments. The only place that knows the order of new_job's fields. Inlined.
create or replace function make_job(
  type            text,
  queue           text default null,
  priority        int default null,
  max_attempts    int default null,
  delay_seconds   float8 default null,
  scheduled_at    timestamptz default null,
  expires_at      timestamptz default null,
  idempotency_key text default null,
  partition_key   text default null,
  traceparent     text default null,
  tags            text[] default null,
  fair_key        text default null,
  after           jsonb default null, -- [id, …] or { slot: [id, …] }
  on_blocker_dead text default null,
  debounce        jsonb default null,
  throttle        jsonb default null
) returns new_job
language sql immutable
return row(type, null, queue, priority, max_attempts, delay_seconds, scheduled_at, expires_at, idempotency_key,
           partition_key, traceparent, tags, fair_key, nullif(after, '[]'), on_blocker_dead, debounce, throttle)::new_job;

create or replace function enqueue(
  type            text,
  payload         jsonb default '{}',
  queue           text default null,
  priority        int default null,
  max_attempts    int default null,
  delay_seconds   float8 default null,
  scheduled_at    timestamptz default null,
  expires_at      timestamptz default null,
  idempotency_key text default null,
  partition_key   text default null,
  traceparent     text default null,
  tags            text[] default null,
  fair_key        text default null,
  after           jsonb default null, -- [id, …] or { slot: [id, …] }: it waits until these jobs have ended
  on_blocker_dead text default null,  -- die (the default) or run
  debounce        jsonb default null, -- { key, mode, seconds, max_wait_seconds, max_items }: see debounce.sql
  throttle        jsonb default null  -- { key, seconds }
) returns uuid
language plpgsql
security definer
set search_path from current
as $$
begin
  return (enqueue_alike(
    make_job(type, queue => queue, priority => priority, max_attempts => max_attempts, delay_seconds => delay_seconds,
             scheduled_at => scheduled_at, expires_at => expires_at, idempotency_key => idempotency_key,
             partition_key => partition_key, fair_key => fair_key, traceparent => traceparent, tags => tags, after => after,
             on_blocker_dead => on_blocker_dead, debounce => debounce, throttle => throttle),
    array[payload]))[1];
end $$;

-- The options of enqueue, without the idempotency key, which belongs to one job.
create or replace function enqueue_many(
  type          text,
  payloads      jsonb[],
  queue         text default null,
  priority      int default null,
  max_attempts  int default null,
  delay_seconds float8 default null,
  scheduled_at  timestamptz default null,
  expires_at    timestamptz default null,
  traceparent   text default null,
  tags          text[] default null,
  partition_key text default null,
  fair_key      text default null,
  after         jsonb default null,
  on_blocker_dead text default null,
  debounce      jsonb default null,
  throttle      jsonb default null
) returns setof uuid
language plpgsql
security definer
set search_path from current
as $$
begin
  return query select unnest(enqueue_alike(
    make_job(type, queue => queue, priority => priority, max_attempts => max_attempts, delay_seconds => delay_seconds,
             scheduled_at => scheduled_at, expires_at => expires_at, partition_key => partition_key,
             fair_key => fair_key, traceparent => traceparent, tags => tags, after => after,
             on_blocker_dead => on_blocker_dead, debounce => debounce, throttle => throttle),
    payloads));
end $$;

-- One job, with the options of enqueue as an object. Tells what has become of a call with a debounce or a throttle; `outcome` is
-- null without one, unless the job was there before.
create or replace function enqueue_with_outcome(
  type text, payload jsonb default '{}', options jsonb default '{}',
  out job_id uuid, out outcome text, out replaced_job_id uuid, out scheduled_at timestamptz, out deduplicated boolean
)
language plpgsql
security definer
set search_path from current
as $$
declare
  v_job   new_job := jsonb_populate_record(null::new_job, options || jsonb_build_object('type', type, 'payload', payload));
  v_fault text := coalesce((select format('options: "%s" is not an option', name) from jsonb_object_keys(options) as name
                            where name in ('type', 'payload') or not to_jsonb(v_job) ? name limit 1),
                           outside_fault_of(v_job));
begin
  if v_fault is not null then
    perform refuse(v_fault);
  end if;
  v_job.after := nullif(v_job.after, '[]');
  select new.id, new.outcome, new.replaced_id, new.scheduled_at, new.deduplicated
  into job_id, outcome, replaced_job_id, enqueue_with_outcome.scheduled_at, enqueue_with_outcome.deduplicated
  from insert_jobs(array[v_job]) as new;
end $$;

-- A list of jobs; or one object, with their `payloads` and the options that they share: texts and numbers only. The answer
-- has an object for each job; or only the ids, where the short way was taken: these jobs are new and due at once.
create or replace function enqueue_jobs(p_jobs jsonb) returns json
language plpgsql
security definer
set search_path from current
as $$
declare
  v_shared new_job;
  v_jobs   new_job[];
begin
  if jsonb_typeof(p_jobs) = 'object' then
    v_shared := make_job(
      p_jobs->>'type', queue => p_jobs->>'queue', priority => (p_jobs->>'priority')::int,
      max_attempts => (p_jobs->>'max_attempts')::int, delay_seconds => (p_jobs->>'delay_seconds')::float8,
      idempotency_key => p_jobs->>'idempotency_key', partition_key => p_jobs->>'partition_key',
      fair_key => p_jobs->>'fair_key', traceparent => p_jobs->>'traceparent', after => p_jobs->'after',
      on_blocker_dead => p_jobs->>'on_blocker_dead');
    if is_plain(v_shared) then
      return to_json(insert_uniform(v_shared, p_jobs->'payloads'));
    end if;
    v_jobs := with_payloads(v_shared, array(select jsonb_array_elements(p_jobs->'payloads')));
  else
    v_jobs := read_jobs(p_jobs);
  end if;
  return coalesce(json_strip_nulls(json_agg(json_build_object(
           'id', id, 'status', status, 'deduplicated', deduplicated, 'scheduled_ms', date_part('epoch', scheduled_at) * 1000,
           'outcome', outcome, 'replaced_id', replaced_id))), '[]')
  from insert_jobs(v_jobs);
end $$;

-- `after` of an empty list is none: such a job waits for nobody.
create or replace function read_jobs(p_jobs jsonb) returns new_job[]
language plpgsql as $$
declare
  v_jobs new_job[] := array(select job from jsonb_populate_recordset(null::new_job, p_jobs) as job);
begin
  if exists (select from unnest(v_jobs) where after in ('[]', 'null')) then
    for n in 1 .. cardinality(v_jobs) loop
      v_jobs[n].after := nullif(nullif(v_jobs[n].after, '[]'), 'null');
    end loop;
  end if;
  return v_jobs;
end $$;

-- An app's jobs that differ only in their payloads. Returns their ids in the order of the payloads.
create or replace function enqueue_alike(p_job new_job, p_payloads jsonb[]) returns uuid[]
language plpgsql as $$
declare
  v_fault text := outside_fault_of(p_job);
begin
  if v_fault is not null then
    perform refuse(v_fault);
  elsif is_plain(p_job) then
    return insert_uniform(p_job, to_jsonb(array_replace(p_payloads, null, '{}'))); -- a jsonb holds up to 256 MB
  end if;
  return array(select id from insert_jobs(with_payloads(p_job, p_payloads)));
end $$;

create or replace function with_payloads(p_job new_job, p_payloads jsonb[]) returns new_job[]
language plpgsql immutable as $$
declare
  v_jobs new_job[] := '{}';
begin
  foreach p_job.payload in array coalesce(p_payloads, '{}') loop
    v_jobs := v_jobs || p_job;
  end loop;
  return v_jobs;
end $$;
