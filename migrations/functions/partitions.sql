-- `job` and `done` have a partition for each day of ids. Adding and dropping a day needs locks that block everybody else.
-- So these functions wait only briefly for a lock, give up, and are tried again in the next round.
--
-- They lock the parent table before its partitions, as every other statement does, so they cannot deadlock. An advisory
-- lock lets only one of add_partitions, drop_oldest_day and prune run at a time, because they also use partitions directly.

create or replace function lock_partitions() returns boolean
language sql volatile
return pg_try_advisory_xact_lock(hashtextextended('sluice.partitions.' || current_schema(), 0));

create or replace function partition_name(p_table text, p_day date) returns text
language sql immutable
return format('%s_%s', p_table, to_char(p_day, 'YYYYMMDD'));

-- Where a day of ids begins: at the start of the 65-second bucket that contains midnight. So a packed row never spans two days.
create or replace function start_of_day(p_day date) returns uuid
language sql immutable
return (left(id_at(p_day::timestamp at time zone 'utc')::text, 8) || repeat('0', 24))::uuid;

-- Partitions for today and the next days. A day that began in the default partition stays there.
-- Attaching locks the default partition for a moment, and every claim reads that partition.
create or replace function add_partitions(p_days int default 7) returns int
language plpgsql
security definer
set search_path from current
set lock_timeout = '50ms'
as $$
declare
  v_table text;
  v_day   date;
  v_name  text;
  v_added int := 0;
begin
  if not lock_partitions() then
    return 0;
  end if;
  for v_day in select (now() at time zone 'utc')::date + n from generate_series(0, p_days) as n loop
    continue when to_regclass(partition_name('job', v_day)) is not null;
    begin -- both or neither
      foreach v_table in array array['job', 'done'] loop
        v_name := partition_name(v_table, v_day);
        -- Built apart and then attached: attaching waits for no reader or writer of the parent.
        execute format('create table %I (like %I including defaults including constraints including indexes)',
                       v_name, v_table);
        if v_table = 'done' then
          execute format('alter table %I set (toast_tuple_target = 8160)', v_name);
        end if;
        execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                       v_table, v_name, start_of_day(v_day), start_of_day(v_day + 1));
      end loop;
      v_added := v_added + 1;
    exception
      when check_violation then null; -- rows of that day are in the default partition
      when lock_not_available then exit; -- the next day would meet the same lock
    end;
  end loop;
  return v_added;
end $$;

-- Drops the oldest day whose jobs are all older than `p_keep`. Jobs that are still needed (not finished, dead, or finished
-- later than that) are copied to the default partitions, where prune finds them later. Nobody can use `job` and `done`
-- meanwhile, so a day with more than `p_limit` such jobs stays. Returns the day, or null if there is no day to drop or the
-- tables are in use.
create or replace function drop_oldest_day(p_keep interval default interval '7 days', p_limit int default 10000)
returns date
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set lock_timeout = '50ms'
as $$
declare
  c_tries   constant int := 3;
  c_seconds constant float8 := 0.2; -- the pause between two tries, in which waiting statements go on
  v_day     date;
begin
  if not lock_partitions() then
    return null;
  end if;
  select min(day) into v_day
  from (
    select right(inhrelid::regclass::text, 8)::date as day
    from pg_inherits
    where inhparent = 'job'::regclass and inhrelid <> 'job_default'::regclass
  ) as days
  where day + 1 <= ((now() - p_keep) at time zone 'utc')::date
    and cardinality(survivors_of(day, p_keep, p_limit + 1)) <= p_limit;
  for n in 1 .. c_tries loop
    exit when v_day is null;
    begin
      perform drop_day(v_day, p_keep);
      return v_day;
    exception
      when lock_not_available then perform pg_sleep(c_seconds * (0.5 + random()));
    end;
  end loop;
  return null;
end $$;

-- The locks are taken in three steps, because some statements use `job` first and others `done`:
-- 1. Block writers of `done`. They hold no lock on `job` yet: a settle uses `job` after `done`, and so does the claim that
--    settles.
-- 2. Block everybody who uses `job`. Statements that are in it already are not blocked by step 1, because they only read
--    `done`.
-- 3. Block readers of `done`. Those that also hold `job` have ended by then. A statement that locks in another order (a
--    transaction that enqueues and then completes, a list of completed jobs) ends in our lock_timeout, which is shorter
--    than deadlock_timeout.
-- After that nobody else holds a partition, except statements that name it directly, and autovacuum.
create or replace function drop_day(p_day date, p_keep interval) returns void
language plpgsql as $$
declare
  v_job  text := partition_name('job', p_day);
  v_done text := partition_name('done', p_day);
  v_ids  uuid[];
begin
  lock table only done in share row exclusive mode;
  lock table only job in access exclusive mode;
  lock table only done in access exclusive mode;
  execute format('lock table job_default, %I, done_default, %I in access exclusive mode nowait', v_job, v_done);
  v_ids := survivors_of(p_day, p_keep, null); -- in a snapshot that is younger than the locks
  execute format('alter table job detach partition %I', v_job);
  execute format('alter table done detach partition %I', v_done);
  execute format('insert into job select * from %I where id = any($1)', v_job) using v_ids;
  execute format('insert into done select * from %I where finished_at > $1', v_done) using now() - p_keep;
  execute format('drop table %I, %I', v_job, v_done);
  insert into dropped_day (day, next_id) values (p_day, start_of_day(p_day)) on conflict do nothing;
end $$;

-- The jobs of a day that are still needed, up to a number of each kind. They are found through the tables that hold their
-- states, not by reading the whole day, and in one snapshot, in which each job is in one table.
create or replace function survivors_of(p_day date, p_keep interval, p_limit int) returns uuid[]
language sql stable
as $$
  with day as materialized (
    select start_of_day(p_day) as low, start_of_day(p_day + 1) as high
  )
  select array(
    (select id from ready where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from scheduled where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from closed where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from blocked where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from lease cross join unnest(ids) as id
     where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from done cross join unnest(ids) as id
     where hi_id >= (select low from day) and hi_id < (select high from day) and finished_at > now() - p_keep
     limit p_limit))
$$;

-- Removes what is past its retention, a bounded number of rows in each call: closed jobs, finished jobs of the default
-- partitions, what belonged to jobs of dropped days, idempotency keys, keys of debounces, minutes of the books, and records of rounds,
-- runs over dead letters and enqueue errors. A job and its state are removed together.
create or replace function prune(
  p_limit int, p_keep interval default interval '7 days', p_keep_dead interval default interval '30 days'
) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_oldest uuid := id_at(now() - p_keep);
  v_closed uuid[];
  v_turns  held_turn[];
  v_done   uuid[];
  v_keys   int;
begin
  if not lock_partitions() then
    return 0;
  end if;
  with old as materialized (
    (select id from closed
     where status = 'dead' and id < id_at(now() - p_keep_dead) and closed_at <= now() - p_keep_dead
     order by id limit p_limit)
    union all
    (select id from closed
     where status = 'discarded' and id < v_oldest and closed_at <= now() - p_keep order by id limit p_limit)
    union all
    (select id from closed
     where status = 'cancelled' and id < v_oldest and closed_at <= now() - p_keep order by id limit p_limit)
  ),
  removed as (
    delete from closed where id = any(array(select id from old)) returning id, lane, key, place
  )
  select array_agg(id), array_agg(row(lane, key, place)::held_turn) filter (where key is not null)
  into v_closed, v_turns from removed;
  perform return_held_turns(v_turns); -- of dead jobs that blocked their keys

  with removed as (
    delete from done_default
    where ctid = any(array(
      select ctid from done_default
      where hi_id < v_oldest and finished_at <= now() - p_keep order by hi_id limit p_limit))
    returning ids
  )
  select array_agg(id) into v_done from removed cross join unnest(ids) as id;

  delete from idempotency
  where key_hash = any(array(
    select key_hash from idempotency where expires_at <= now() order by expires_at limit p_limit));
  get diagnostics v_keys = row_count;

  delete from round
  where id = any(array(select id from round where ended_at <= now() - p_keep order by id limit p_limit));
  perform forget_runs(p_keep_dead, p_limit);
  delete from enqueue_error
  where ctid = any(array(select ctid from enqueue_error where at <= now() - p_keep order by at limit p_limit));
  delete from tally
  where (minute, lane) in (
    select minute, lane from tally
    where minute > '-infinity' and minute < now() - interval '25 hours'
    order by minute limit p_limit);
  perform prune_history(p_limit);
  perform prune_workers(p_limit);
  perform prune_flows(p_limit, p_keep);
  v_keys := v_keys + prune_debounce(p_limit);
  return v_keys + forget_jobs(v_closed || v_done) + prune_dropped_day(p_limit) + prune_keys();
end $$;

create or replace function forget_jobs(p_ids uuid[]) returns int
language plpgsql as $$
declare
  v_jobs int;
begin
  delete from output where id = any(p_ids);
  delete from failed_attempt where id = any(p_ids);
  delete from job_tag where id = any(p_ids);
  delete from checkpoint where id = any(p_ids);
  delete from cancel_request where id = any(p_ids);
  delete from dependency where id = any(p_ids);
  delete from chain_job where id = any(p_ids);
  delete from job where id = any(p_ids);
  get diagnostics v_jobs = row_count;
  return v_jobs;
end $$;

-- Walks through a dropped day's ids and removes rows that belong to no job any more.
create or replace function prune_dropped_day(p_limit int) returns int
language plpgsql as $$
declare
  v_dropped dropped_day%rowtype;
  v_upto    uuid;
  v_rows    int;
  v_pruned  int := 0;
  v_table   text;
begin
  select * into v_dropped from dropped_day order by day limit 1 for update skip locked;
  if not found then
    return 0;
  end if;
  v_upto := start_of_day(v_dropped.day + 1);
  -- as far as the table with the most rows can go with this limit
  foreach v_table in array array['output', 'failed_attempt', 'job_tag', 'dependency', 'chain_job', 'checkpoint', 'cancel_request'] loop
    execute format('select least($1, (select id from %I where id >= $2 and id < $1 order by id offset $3 limit 1))',
                   v_table)
    into v_upto using v_upto, v_dropped.next_id, p_limit;
  end loop;
  foreach v_table in array array['output', 'failed_attempt', 'job_tag', 'dependency', 'chain_job', 'checkpoint', 'cancel_request'] loop
    execute format('delete from %I as hanging where id >= $1 and id < $2
                    and not exists (select from job where job.id = hanging.id)', v_table)
    using v_dropped.next_id, v_upto;
    get diagnostics v_rows = row_count;
    v_pruned := v_pruned + v_rows;
  end loop;
  if v_upto = start_of_day(v_dropped.day + 1) then
    delete from dropped_day where day = v_dropped.day;
  else
    update dropped_day set next_id = v_upto where day = v_dropped.day;
  end if;
  return v_pruned;
end $$;
