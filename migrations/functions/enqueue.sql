-- enqueue: new jobs, one or many, in the caller's transaction. Three faces:
--   enqueue(type, payload, …)            one job, for any SQL client
--   enqueue_many(type, payloads, …)      many of one type, fit for array(select … from my_table)
--   enqueue_jobs(jobs jsonb)             any batch, what the HTTP API calls
-- over two ways to the tables: insert_alike for jobs that are due at once and differ in nothing but their payloads,
-- which is what nearly every call asks for, and insert_jobs for all there is. What is refused is in check.sql.

-- The lane of a name. Whoever meets a new one makes it; others wait for that a moment, but not for a transaction that
-- stays open: then each makes a lane of its own, which is as good.
create or replace function lane_of(p_queue text, p_type text, p_priority smallint, p_group_size smallint default 0)
returns int
language plpgsql as $$
declare
  c_tries constant int := 10;
  c_seconds constant float8 := 0.005;
  v_lane    int;
  v_is_ours boolean := false;
begin
  for n in 0 .. c_tries loop
    select lane into v_lane
    from lane
    where queue = p_queue and type = p_type and priority = p_priority and group_size = p_group_size
    order by lane
    limit 1;
    exit when v_lane is not null or n = c_tries;
    -- The second look, with the lock held, finds what another has committed in between.
    if not pg_try_advisory_xact_lock(hashtextextended(
         format('sluice.lane.%s.%s.%s.%s.%s', current_schema(), p_queue, p_type, p_priority, p_group_size), 0)) then
      perform pg_sleep(c_seconds);
    elsif v_is_ours then
      exit;
    else
      v_is_ours := true;
    end if;
  end loop;
  if v_lane is null then
    perform refuse_bad_name('type', p_type), refuse_bad_name('queue', p_queue);
    if p_group_size = 0 then -- the others are for jobs that are here already
      perform refuse_too_many_lanes(p_queue);
    end if;
    insert into lane (queue, type, priority, group_size)
    values (p_queue, p_type, p_priority, p_group_size)
    returning lane into v_lane;
  end if;
  return v_lane;
end $$;

-- A name that has a lane is a good one, so only new ones are looked at.
create or replace function refuse_bad_name(p_field text, p_name text) returns void
language plpgsql as $$
begin
  if p_name is null or p_name !~ '^[a-z][a-z0-9_.-]{0,62}$' then
    perform refuse(format('%s: lower case letters, digits, ".", "_" and "-", at most 63, a letter first', p_field));
  end if;
end $$;

-- Every round looks at every lane, so their number is bounded: queues by a setting of the database, and lanes by five for
-- each of these. Counted only when a lane is made. What others make at the same moment is not seen yet, so the bound may
-- be passed by as many as are making one.
create or replace function refuse_too_many_lanes(p_queue text) returns void
language plpgsql as $$
declare
  v_max    int := coalesce(nullif(current_setting('sluice.max_queues', true), ''), '1000');
  v_queues int;
  v_lanes  int;
  v_known  boolean;
begin
  select count(distinct queue), count(*), coalesce(bool_or(queue = p_queue), false)
  into v_queues, v_lanes, v_known
  from lane
  where group_size = 0;
  if v_queues >= v_max and not v_known then
    perform refuse(format('queue: there are %s queues already and no more are made, use one of them '
                          'or raise sluice.max_queues', v_queues));
  elsif v_lanes >= 5 * v_max then
    perform refuse(format('queue: there are %s combinations of queue, type and priority already and no more are made, '
                          'use one of them or raise sluice.max_queues', v_lanes));
  end if;
end $$;

-- What an app may not ask for, beside what nobody may. The HTTP API refuses the same by itself. The Worker's own way,
-- enqueue_jobs, is open to no app: by that the canary comes.
create or replace function refuse_outside(p_type text, p_expires_at timestamptz) returns void
language plpgsql as $$
begin
  if p_type like 'sluice.%' then
    perform refuse('type: those that begin with "sluice." are Sluice''s own');
  elsif p_expires_at <= now() then
    perform refuse('expires_at: not in the future');
  end if;
end $$;

create or replace function refuse(p_fault text) returns void
language plpgsql as $$
begin
  raise exception using errcode = 'invalid_parameter_value', message = p_fault;
end $$;

-- Two requests with one key are the same when all their other fields are.
create or replace function fingerprint_of(job new_job) returns bigint
language sql immutable
return ('x' || left(md5(row(job.type, job.payload, job.queue, job.priority, job.max_attempts, job.delay_seconds,
  extract(epoch from job.scheduled_at), extract(epoch from job.expires_at), job.partition_key, job.tags)::text), 16)
)::bit(64)::bigint;

create or replace function key_hash_of(key text) returns uuid
language sql immutable
return encode(substring(sha256(convert_to(key, 'UTF8')) for 16), 'hex')::uuid;

-- Jobs that are due at once, have no key, no expiry and no tags, and differ in nothing but their payloads: one statement
-- with one lane and one of each option. To start a statement costs by the parts it has, and for a few jobs that is more
-- than to write them; insert_jobs has all the parts.
create or replace function insert_alike(
  p_type          text,
  p_payloads      jsonb,
  p_queue         text,
  p_priority      int,
  p_max_attempts  int,
  p_partition_key text,
  p_traceparent   text
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
  v_fault text := fault_of(row(p_type, null, p_queue, p_priority, p_max_attempts, null, null, null, null,
                               p_partition_key, null, null)::new_job);
  v_trace text := traceparent_of(p_traceparent);
  v_lane  int;
  v_ids   uuid[];
begin
  if v_fault is not null then
    perform refuse(v_fault);
  elsif v_jobs = 0 then
    return '{}';
  end if;
  v_lane := lane_of(coalesce(p_queue, 'default'), p_type, coalesce(p_priority, 5)::smallint);

  if v_jobs = 1 and payload_fault_of(p_payloads->0) is null then
    -- The same as below: rows of values start in half the time.
    v_ids := array[numbered_id(v_stem, 1)];
    with written as (
      insert into job (id, lane, max_attempts, partition_key, traceparent, payload)
      values (v_ids[1], v_lane, coalesce(p_max_attempts, 5), p_partition_key, v_trace, p_payloads->0)
    ),
    readied as (
      insert into ready (seq, id, lane) values (nextval('ready_seq'), v_ids[1], v_lane)
    )
    insert into ledger (lane, enqueued, pending) values (v_lane, 1, 1);
    return v_ids;
  end if;

  with written as (
    insert into job (id, lane, max_attempts, partition_key, traceparent, payload)
    select numbered_id(v_stem, new.number), v_lane, coalesce(p_max_attempts, 5), p_partition_key, v_trace,
           new.payload
    from jsonb_array_elements(p_payloads) with ordinality as new(payload, number)
    where payload_fault_of(new.payload) is null
    returning id
  ),
  readied as (
    insert into ready (seq, id, lane) select nextval('ready_seq'), id, v_lane from written
  ),
  booked as (
    insert into ledger (lane, enqueued, pending) values (v_lane, v_jobs, v_jobs)
  )
  select array_agg(id) into v_ids from written;
  if cardinality(v_ids) is distinct from v_jobs then
    perform refuse(payload_fault_of(payload))
    from jsonb_array_elements(p_payloads) as payload
    where payload_fault_of(payload) is not null;
  end if;
  return v_ids;
end $$;

-- Any jobs: each with its own lane, time, key, expiry and tags.
create or replace function insert_jobs(p_jobs new_job[])
returns table (id uuid, status text, scheduled_at timestamptz, deduplicated boolean)
language plpgsql
set enable_seqscan = off -- the keys of a week are many
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_fault    text;
  v_keyed    boolean;
  v_later    boolean;
  v_expiring boolean;
  v_tagged   boolean;
  v_alike    boolean;
  v_now      timestamptz;
  v_stem     text := id_stem(cardinality(p_jobs));
  v_ids      uuid[];
  v_lanes    int[];
  v_run_ats  timestamptz[]; -- null: now
  v_owners   uuid[];        -- whose job the key names; null: no job has a key
begin
  select (array_agg(fault) filter (where fault is not null))[1],
         bool_or((job).idempotency_key is not null),
         bool_or((job).delay_seconds > 0 or (job).scheduled_at is not null),
         bool_or((job).expires_at is not null),
         bool_or(cardinality((job).tags) > 0),
         bool_and((job).type = p_jobs[1].type and (job).queue is not distinct from p_jobs[1].queue
                  and (job).priority is not distinct from p_jobs[1].priority)
  into v_fault, v_keyed, v_later, v_expiring, v_tagged, v_alike
  from (
    select job, coalesce(payload_fault_of(job.payload), fault_of(job)) as fault from unnest(p_jobs) as job
  ) as checked;
  if v_fault is not null then
    perform refuse(v_fault);
  end if;

  v_ids := array(
    select numbered_id(v_stem, number) from generate_series(1, cardinality(p_jobs)) as number);
  if v_alike then
    v_lanes := array_fill(
      lane_of(coalesce(p_jobs[1].queue, 'default'), p_jobs[1].type, coalesce(p_jobs[1].priority, 5::smallint)),
      array[cardinality(p_jobs)]);
  else
    with asked as materialized (
      select row_number() over () as position, coalesce(job.queue, 'default') as queue, job.type,
             coalesce(job.priority, 5::smallint) as priority
      from unnest(p_jobs) as job
    ),
    named as materialized (
      select queue, type, priority, lane_of(queue, type, priority) as lane
      from (select distinct queue, type, priority from asked) as apart
    )
    select array_agg(named.lane order by asked.position) into v_lanes
    from asked join named using (queue, type, priority);
  end if;

  if v_later then
    -- The lock comes before the clock: so, while the clock does not step back, nothing is written with a run_at that lies
    -- before its writer's lock, and keep_reachable has nothing to do (see advance_cursors).
    lock table scheduled in row exclusive mode;
    v_now := clock_timestamp();
    v_run_ats := array(
      select case when job.delay_seconds > 0 then v_now + make_interval(secs => job.delay_seconds)
                  when job.scheduled_at > v_now then job.scheduled_at end
      from unnest(p_jobs) as job);
  end if;

  if v_keyed then
    v_owners := claim_keys(p_jobs, v_ids);
  end if;

  with written as (
    insert into job (id, lane, max_attempts, scheduled_at, expires_at, idempotency_key, partition_key, traceparent,
                     tags, payload)
    select new.id, new.lane, coalesce(new.max_attempts, 5::smallint), new.run_at,
           -- what is due after its default expiry would never run
           coalesce(new.expires_at, new.run_at + interval '720 hours'),
           new.idempotency_key, new.partition_key, traceparent_of(new.traceparent), nullif(new.tags, '{}'),
           coalesce(new.payload, '{}')
    from unnest(p_jobs, v_ids, v_lanes, v_run_ats, v_owners)
      as new(type, payload, queue, priority, max_attempts, delay_seconds, scheduled_at, expires_at, idempotency_key,
             partition_key, traceparent, tags, id, lane, run_at, owner)
    where new.owner is null or new.owner = new.id
  ),
  readied as (
    insert into ready (seq, id, lane)
    select nextval('ready_seq'), new.id, new.lane
    from unnest(v_ids, v_lanes, v_run_ats, v_owners) as new(id, lane, run_at, owner)
    where new.run_at is null and (new.owner is null or new.owner = new.id)
  )
  insert into ledger (lane, enqueued, pending, scheduled)
  select new.lane, count(*), count(*), nullif(count(new.run_at), 0)
  from unnest(v_ids, v_lanes, v_run_ats, v_owners) as new(id, lane, run_at, owner)
  where new.owner is null or new.owner = new.id
  group by new.lane;

  if v_later then
    insert into scheduled (run_at, id, lane)
    select new.run_at, new.id, new.lane
    from unnest(v_ids, v_lanes, v_run_ats, v_owners) as new(id, lane, run_at, owner)
    where new.run_at is not null and (new.owner is null or new.owner = new.id);
    perform keep_reachable((select min(run_at) from unnest(v_run_ats) as run_at));
  end if;
  if v_later or v_expiring then
    insert into expiry (expires_at, id)
    select job.expires_at, job.id
    from job
    where job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)]
      and job.expires_at is not null;
  end if;
  if v_tagged then
    insert into job_tag (tag, id)
    select distinct tag, job.id
    from job cross join unnest(job.tags) as tag
    where job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)];
  end if;

  return query
    select coalesce(new.owner, new.id),
           coalesce(known.status, 'pending'),
           coalesce(known.scheduled_at, new.run_at, time_of_id(new.id)),
           new.owner is not null and new.owner <> new.id
    from unnest(v_ids, v_run_ats, v_owners) with ordinality as new(id, run_at, owner, position)
    cross join lateral known_job(nullif(new.owner, new.id)) as known
    order by new.position;
end $$;

-- What became of the job that a key names; if it was pruned, it had been completed. A function of its own: the view's
-- plan is large, and few enqueues need it.
create or replace function known_job(p_id uuid, out status text, out scheduled_at timestamptz)
language plpgsql stable strict as $$
begin
  select jobs.status, jobs.scheduled_at into status, scheduled_at from jobs where jobs.id = p_id;
  status := coalesce(status, 'completed');
  scheduled_at := coalesce(scheduled_at, time_of_id(p_id));
end $$;

-- The owner of each job's idempotency key: the job itself where the key is new. Of two callers with one new key
-- the second waits in the insert until the first has ended, and the read after it takes a fresh snapshot.
create or replace function claim_keys(p_jobs new_job[], p_ids uuid[]) returns uuid[]
language plpgsql as $$
#variable_conflict use_column
declare
  v_owners   uuid[];
  v_conflict text;
begin
  insert into idempotency as known (key_hash, id, fingerprint, expires_at)
  select distinct on (key_hash) key_hash, id, fingerprint, now() + interval '7 days'
  from (
    select key_hash_of((job).idempotency_key) as key_hash, fingerprint_of(job) as fingerprint, id, position
    from (select job, row_number() over () as position from unnest(p_jobs) as job) as asked
    join unnest(p_ids) with ordinality as given(id, position) using (position)
    where (job).idempotency_key is not null
  ) as keyed
  order by key_hash, position -- sorted keys: two batches cannot wait for each other crosswise
  on conflict (key_hash) do update
  set id = excluded.id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
  where known.expires_at <= now();

  select array_agg(known.id order by position),
         min((job).idempotency_key) filter (where known.fingerprint <> fingerprint_of(job))
  into v_owners, v_conflict
  from (select job, row_number() over () as position from unnest(p_jobs) as job) as asked
  left join lateral (
    select id, fingerprint from idempotency
    where key_hash = key_hash_of((job).idempotency_key)
    limit 1 -- a fence: a look-up for each key, whatever the statistics say
  ) as known on true;
  if v_conflict is not null then
    raise exception using errcode = 'SL422',
      message = format('the idempotency key "%s" was used for another request', v_conflict);
  end if;
  return v_owners;
end $$;

-- A list of jobs, each answered with an object; or one object with `payloads` and what insert_alike takes, answered with
-- ids: they tell all there is to know of these.
create or replace function enqueue_jobs(p_jobs jsonb) returns json
language plpgsql
security definer
set search_path from current
as $$
begin
  if jsonb_typeof(p_jobs) = 'object' then
    return to_json(insert_alike(p_jobs->>'type', p_jobs->'payloads', p_jobs->>'queue', (p_jobs->>'priority')::int,
      (p_jobs->>'max_attempts')::int, p_jobs->>'partition_key', p_jobs->>'traceparent'));
  end if;
  return coalesce(json_agg(json_build_object('id', id, 'status', status, 'deduplicated', deduplicated,
                                             'scheduled_ms', date_part('epoch', scheduled_at) * 1000)), '[]')
  from insert_jobs(array(select job from jsonb_populate_recordset(null::new_job, p_jobs) as job));
end $$;

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
  tags            text[] default null
) returns uuid
language plpgsql
security definer
set search_path from current
as $$
begin
  perform refuse_outside(type, expires_at);
  if row(delay_seconds, scheduled_at, expires_at, idempotency_key, tags) is null then
    return (insert_alike(type, jsonb_build_array(coalesce(payload, '{}')), queue, priority, max_attempts, partition_key,
                         traceparent))[1];
  end if;
  return id
  from insert_jobs(array[row(type, payload, queue, priority, max_attempts, delay_seconds, scheduled_at, expires_at,
                             idempotency_key, partition_key, traceparent, tags)::new_job]);
end $$;

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
  tags          text[] default null
) returns setof uuid
language plpgsql
security definer
set search_path from current
as $$
begin
  perform refuse_outside(type, expires_at);
  if row(delay_seconds, scheduled_at, expires_at, tags) is null then
    -- As one jsonb, which holds 256 MB.
    return query
    select unnest(insert_alike(type, to_jsonb(array_replace(payloads, null, '{}')), queue, priority,
                               max_attempts, null, traceparent));
  else
    return query
    select id
    from insert_jobs(array(
      select row(type, payload, queue, priority, max_attempts, delay_seconds, scheduled_at, expires_at,
                 null, null, traceparent, tags)::new_job
      from unnest(payloads) as payload));
  end if;
end $$;
