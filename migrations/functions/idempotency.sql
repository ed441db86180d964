-- Idempotency keys: a second request with a key that is in use gets the job of the first one. A key is kept for 7 days.

create or replace function key_hash_of(key text) returns uuid
language sql immutable
return encode(substring(sha256(convert_to(key, 'UTF8')) for 16), 'hex')::uuid;

-- Two requests with one key are the same if all their other options are the same; only the trace context may differ. A
-- new option is compared without an edit here. Trailing nulls are cut off, so an option that is added to new_job does not
-- change the fingerprints of requests that do not use it. The two times are compared as numbers: their text depends on
-- the session's time zone.
create or replace function fingerprint_of(p_job new_job) returns bigint
language plpgsql immutable as $$
declare
  v_times text := row(extract(epoch from p_job.scheduled_at), extract(epoch from p_job.expires_at))::text;
begin
  p_job.idempotency_key := null;
  p_job.traceparent := null;
  p_job.scheduled_at := null;
  p_job.expires_at := null;
  return ('x' || left(md5(v_times || rtrim(p_job::text, ',)')), 16))::bit(64)::bigint;
end $$;

-- Reserves the keys of new jobs. Returns the places in p_jobs of the jobs whose key belongs to another job.
--
-- Two transactions with the same new key: the unique index makes the second one wait in its insert until the first has
-- ended. The read after that is a new statement with a new snapshot, so it sees what the first one committed. The insert
-- also locks the rows of keys that are in use, so none of them is pruned before the read.
create or replace function reserve_keys(p_jobs new_job[], p_stem text) returns bigint[]
language plpgsql as $$
#variable_conflict use_column
declare
  v_duplicates bigint[];
  v_conflict   text;
begin
  insert into idempotency as used (key_hash, id, fingerprint, expires_at)
  select distinct on (key_hash) key_hash, numbered_id(p_stem, ordinality), fingerprint, now() + interval '7 days'
  from (
    select key_hash_of((job).idempotency_key) as key_hash, fingerprint_of(job) as fingerprint, ordinality
    from (select job, row_number() over () as ordinality from unnest(p_jobs) as job) as listed
    where (job).idempotency_key is not null
  ) as keyed
  order by key_hash, ordinality -- all batches insert in the order of the hashes, so they cannot deadlock
  on conflict (key_hash) do update
  set id = excluded.id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
  where used.expires_at <= now();

  select array_agg(ordinality), min((job).idempotency_key) filter (where used.fingerprint <> fingerprint_of(job))
  into v_duplicates, v_conflict
  from (select job, row_number() over () as ordinality from unnest(p_jobs) as job) as listed
  cross join lateral (
    select id, fingerprint from idempotency
    where key_hash = key_hash_of((job).idempotency_key)
    limit 1 -- keeps the planner from reading the whole table: one index look-up for each key
  ) as used
  where used.id <> numbered_id(p_stem, ordinality);
  if v_conflict is not null then
    raise exception using errcode = 'SL422',
      message = format('the idempotency key "%s" was used for another request', v_conflict);
  end if;
  return coalesce(v_duplicates, '{}');
end $$;

-- The job that a key belongs to.
create or replace function owner_of_key(p_key text) returns uuid
language plpgsql stable strict as $$
begin
  return (select id from idempotency where key_hash = key_hash_of(p_key));
end $$;

-- The job that a call is answered with. One that was pruned had been completed. A function of its own: the plan of the view
-- `jobs` is large, and few enqueues need it.
create or replace function find_owner(p_id uuid, out id uuid, out status text, out scheduled_at timestamptz)
language plpgsql stable strict as $$
begin
  id := p_id;
  select jobs.status, jobs.scheduled_at into status, scheduled_at from jobs where jobs.id = p_id;
  status := coalesce(status, 'completed');
  scheduled_at := coalesce(scheduled_at, time_of_id(id));
end $$;
