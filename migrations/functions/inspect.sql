-- inspect: looks for states that no job can be in. The tables themselves refuse only a few of them, because checks would
-- cost time in every statement (docs/decisions/constraints.md). So each reap round inspects a sample. What it finds is
-- stored in `impossible_state`, inspected again by each later round, and removed when it is fine.
--
-- There are no false alarms: a job moves between its tables within one transaction, and wrong_states is one statement,
-- which reads all tables in one snapshot. An advisory lock lets only one inspection run at a time.
create or replace function inspect(
  p_jobs int default 500, -- neighbours, from a random start
  p_rows int default 200, -- leases, and rows of `done`
  out looked int, out wrong int
)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  c_most constant int := 100; -- the most rows that are stored, because each round inspects all of them
  v_ids  uuid[];
begin
  looked := 0;
  if pg_try_advisory_xact_lock(hashtextextended('sluice.inspect.' || current_schema(), 0)) then
    v_ids := some_job_ids(p_jobs);
    looked := cardinality(v_ids);
    with found as materialized (
      select kind, id, what from wrong_states(v_ids[1], v_ids[looked], p_rows)
    ),
    forgotten as (
      delete from impossible_state as known
      where not exists (select from found where found.kind = known.kind and found.id = known.id)
    )
    insert into impossible_state as known (kind, id, what)
    select found.kind, found.id, found.what
    from found left join impossible_state as old using (kind, id)
    order by old.id is null, found.kind, found.id -- rows that are stored already come first
    limit c_most
    on conflict (kind, id) do update set what = excluded.what where known.what <> excluded.what;
  end if;
  select count(*) into wrong from impossible_state;
end $$;

-- A range of ids for the sample. It starts at a random time among all jobs, then at a random time within that 65-second
-- bucket of ids, then a random number of jobs further. So the middle of a burst is inspected too. If too few jobs follow,
-- the range ends with the last job.
create or replace function some_job_ids(p_count int) returns uuid[]
language plpgsql as $$
declare
  c_further constant int := 10000;
  v_low     uuid := (select id from job order by id limit 1);
  v_high    uuid := (select id from job order by id desc limit 1);
  v_last    uuid := (select id from (select id from job order by id desc limit p_count) as newest order by id limit 1);
  v_ids     uuid[];
  v_skipped int;
begin
  v_low := (select id from job where id >= random_start(v_low, v_high) order by id limit 1);
  v_high := (select id from job where id <= end_of_bucket(v_low) order by id desc limit 1);
  v_low := least(random_start(v_low, v_high), v_last);
  v_ids := array(select id from job where id >= v_low order by id limit c_further + p_count);
  v_skipped := floor(random() * (greatest(cardinality(v_ids) - p_count, 0) + 1));
  return v_ids[v_skipped + 1 : v_skipped + p_count];
end $$;

create or replace function random_start(p_low uuid, p_high uuid) returns uuid
language sql volatile
return id_at(time_of_id(p_low) + random() * (time_of_id(p_high) - time_of_id(p_low)));

-- What is wrong with the jobs from one id to another, and with the jobs that were wrong before. Every look is by an
-- index, except for the leases: they have none by job, so they are read once.
create or replace function wrong_jobs(p_low uuid, p_high uuid)
returns table (kind text, id uuid, what text)
language sql volatile as $$
  -- The jobs are looked up by ranges of ids. A list of ids would be searched for one by one, in each partition of `job`:
  -- before PostgreSQL 17 that is some 15,000 buffers for 500 jobs.
  with id_range as materialized (
    select p_low as low, p_high as high
    union all
    select known.id, known.id from impossible_state as known
    where known.kind = 'job' and (known.id between p_low and p_high) is not true -- no job is counted twice
  ),
  sample as materialized (
    select job.id, job.max_attempts
    from id_range cross join lateral (select id, max_attempts from job where job.id >= low and job.id <= high offset 0) as job
  ),
  bucket as materialized ( -- of ids: all of a row of `done` lie in one
    select distinct (left(sample.id::text, 8) || repeat('0', 24))::uuid as low, end_of_bucket(sample.id) as high from sample
  ),
  place as (
    select ready.id, 'ready' as name, ready.attempt, 0 as more
    from id_range cross join lateral (select id, attempt from ready where id >= low and id <= high offset 0) as ready
    union all
    select scheduled.id, 'scheduled', scheduled.attempt, 0
    from id_range cross join lateral (select id, attempt from scheduled where id >= low and id <= high offset 0) as scheduled
    union all
    select closed.id, 'closed', closed.attempt, 0
    from id_range cross join lateral (select id, attempt from closed where id >= low and id <= high offset 0) as closed
    union all
    select blocked.id, 'blocked', blocked.attempt, 0
    from id_range cross join lateral (select id, attempt from blocked where id >= low and id <= high offset 0) as blocked
    union all
    -- The check after a reconciled job's last run is one claim more than the maximum.
    select entry.id, 'lease', coalesce(entry.attempt, 1), 1
    from lease cross join lateral unnest(ids, attempts) as entry(id, attempt)
    where deadline > '-infinity'
    union all
    select entry.id, 'done', coalesce(entry.attempt, 1), 1
    from bucket
    cross join lateral (select ids, attempts from done where hi_id >= low and hi_id <= high offset 0) as packed
    cross join lateral unnest(ids, attempts) as entry(id, attempt)
  ),
  job_state as (
    select sample.id, max_attempts, count(place.name) as places,
           string_agg(place.name, ' and ' order by place.name) as names,
           max(place.attempt) as attempt, bool_or(place.attempt < 0 or place.attempt > max_attempts + more) as is_beyond
    from sample left join place on place.id = sample.id
    group by sample.id, max_attempts
  )
  select 'job', job_state.id,
         case when places = 0 then 'is in none of ready, scheduled, blocked, lease, done and closed'
              when places > 1 then format('is in %s at once', names)
              when is_beyond then format('is at attempt %s of at most %s', attempt, max_attempts)
         end
  from job_state
$$;

-- What is wrong with the newest leases and rows of `done`, and with those that were wrong before.
create or replace function wrong_packed_rows(p_rows int)
returns table (kind text, id uuid, what text)
language sql volatile as $$
  with packed as ( -- rows with arrays of ids
    select 'lease' as kind, newest.key as id, ids, attempts, abandonments, keys, places, ids[1] as lo_id,
           ids[cardinality(ids)] as hi_id
    from (
      (select key, ids, attempts, abandonments, keys, places from lease order by deadline desc limit p_rows)
      union all
      select key, ids, attempts, abandonments, keys, places from lease
      where key = any(array(select known.id from impossible_state as known where known.kind = 'lease'))
    ) as newest
    union all
    select 'done', newest.hi_id, ids, attempts, null, null, null, lo_id, hi_id
    from (
      (select hi_id, lo_id, ids, attempts from done order by hi_id desc limit p_rows)
      union all
      select hi_id, lo_id, ids, attempts from done
      where hi_id = any(array(select known.id from impossible_state as known where known.kind = 'done'))
    ) as newest
  )
  select packed.kind, packed.id,
         case when cardinality(attempts) <> cardinality(ids)
                then format('has %s jobs and %s attempts', cardinality(ids), cardinality(attempts))
              when cardinality(abandonments) <> cardinality(ids)
                then format('has %s jobs and %s abandonments', cardinality(ids), cardinality(abandonments))
              when cardinality(keys) <> cardinality(ids) or cardinality(places) <> cardinality(ids)
                or (keys is null) <> (places is null)
                then format('has %s jobs, %s keys and %s places', cardinality(ids), cardinality(keys), cardinality(places))
              when ids <> array(select distinct entry from unnest(ids) as entry order by entry)
                then 'has jobs that are not in the order of their ids'
              when lo_id <> ids[1] or hi_id <> ids[cardinality(ids)]
                then 'has a lowest or highest id that is not its own'
         end
  from packed
$$;

-- At most one row for each job, lease and row of `done`.
create or replace function wrong_states(p_low uuid, p_high uuid, p_rows int)
returns table (kind text, id uuid, what text)
language sql volatile as $$
  select distinct on (wrong.kind, wrong.id) wrong.kind, wrong.id, wrong.what
  from (
    select * from wrong_jobs(p_low, p_high)
    union all
    select * from wrong_packed_rows(p_rows)
  ) as wrong
  where wrong.what is not null
  order by wrong.kind, wrong.id
$$;
