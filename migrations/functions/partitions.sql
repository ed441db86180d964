-- job and done have a partition for each day of ids. Making one takes no lock that an enqueue would wait for; taking
-- one away copies what is still wanted to the default partition first. What meets a lock gives up and is tried in
-- the next round.

create or replace function partition_name(p_table text, p_day date) returns text
language sql immutable
return format('%s_%s', p_table, to_char(p_day, 'YYYYMMDD'));

-- Where a day of ids begins: at the 65-second bucket that midnight lies in, so that a packed row never spans two days.
create or replace function start_of_day(p_day date) returns uuid
language sql immutable
return (left(id_at(p_day::timestamp at time zone 'utc')::text, 8) || repeat('0', 24))::uuid;

-- Partitions for today and the next days. A day that began in the default partition stays there.
create or replace function add_partitions(p_days int default 7) returns int
language plpgsql
set search_path from current
as $$
declare
  v_table text;
  v_day   date;
  v_name  text;
  v_added int := 0;
begin
  perform set_config('lock_timeout', '2s', true);
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
      -- rows of that day are in the default partition, or another transaction holds it or just made it
      when check_violation or lock_not_available or duplicate_table or unique_violation then null;
    end;
  end loop;
  return v_added;
end $$;

-- Takes away the oldest day whose jobs are all older than `p_keep`. Survivors (not finished, dead, or finished later
-- than that) go to the default partitions, where prune finds them in time. Nobody can use the day meanwhile, so one with
-- more of them than `p_limit` stays until they have ended too. Returns the day, or null when there is none to take away
-- or it is in use.
create or replace function drop_oldest_day(p_keep interval default interval '7 days', p_limit int default 10000)
returns date
language plpgsql
set search_path from current
set enable_seqscan = off
as $$
declare
  v_day  date;
  v_job  text;
  v_done text;
  v_ids  uuid[];
begin
  select min(day) into v_day
  from (
    select right(inhrelid::regclass::text, 8)::date as day
    from pg_inherits
    where inhparent = 'job'::regclass and inhrelid <> 'job_default'::regclass
  ) as days
  where day + 1 <= ((now() - p_keep) at time zone 'utc')::date
    and cardinality(survivors_of(day, p_keep, p_limit + 1)) <= p_limit;
  if v_day is null then
    return null;
  end if;
  v_job := partition_name('job', v_day);
  v_done := partition_name('done', v_day);
  perform set_config('lock_timeout', '2s', true);
  begin
    execute format('lock table job, done, %I, %I in share update exclusive mode', v_job, v_done);
    execute format('lock table %I, %I in access exclusive mode', v_job, v_done);
    v_ids := survivors_of(v_day, p_keep, null); -- in a snapshot that is younger than the locks
    execute format('create temporary table surviving_done on commit drop as select * from %I where finished_at > $1',
                   v_done) using now() - p_keep;
    execute format('create temporary table surviving_job on commit drop as select * from %I where id = any($1)',
                   v_job) using v_ids;
    execute format('alter table job detach partition %I', v_job);
    execute format('alter table done detach partition %I', v_done);
    execute format('drop table %I, %I', v_job, v_done);
    insert into job select * from surviving_job;
    insert into done select * from surviving_done;
    drop table surviving_job, surviving_done;
    insert into dropped_day (day, next_id) values (v_day, start_of_day(v_day)) on conflict do nothing;
  exception
    when lock_not_available then return null;
  end;
  return v_day;
end $$;

-- The jobs of a day that are still wanted, up to a number of each kind: found by where they are, not among all of the
-- day. In one snapshot, in which each of them is in one place.
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
    (select id from lease cross join unnest(ids) as id
     where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from done cross join unnest(ids) as id
     where hi_id >= (select low from day) and hi_id < (select high from day) and finished_at > now() - p_keep
     limit p_limit))
$$;

-- What is past its time, in bounded number: closed jobs, finished jobs of the default partitions, what hung on the jobs
-- of dropped days, idempotency keys, minutes of the books, and the records of rounds and enqueue errors. A job goes
-- together with what says its state.
create or replace function prune(
  p_limit int, p_keep interval default interval '7 days', p_keep_dead interval default interval '30 days'
) returns int
language plpgsql
set search_path from current
set enable_seqscan = off
as $$
declare
  v_oldest uuid := id_at(now() - p_keep);
  v_closed uuid[];
  v_done   uuid[];
  v_keys   int;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('sluice.prune.' || current_schema(), 0)) then
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
    delete from closed where id = any(array(select id from old)) returning id
  )
  select array_agg(id) into v_closed from removed;

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
  delete from enqueue_error
  where ctid = any(array(select ctid from enqueue_error where at <= now() - p_keep order by at limit p_limit));
  delete from tally
  where (minute, lane) in (
    select minute, lane from tally
    where minute > '-infinity' and minute < now() - interval '25 hours'
    order by minute limit p_limit);
  return v_keys + forget_jobs(v_closed || v_done) + prune_dropped_day(p_limit);
end $$;

create or replace function forget_jobs(p_ids uuid[]) returns int
language plpgsql as $$
declare
  v_jobs int;
begin
  delete from output where id = any(p_ids);
  delete from failed_attempt where id = any(p_ids);
  delete from job_tag where id = any(p_ids);
  delete from job where id = any(p_ids);
  get diagnostics v_jobs = row_count;
  return v_jobs;
end $$;

-- Walks once through a dropped day's ids and removes what belongs to no job any more.
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
  foreach v_table in array array['output', 'failed_attempt', 'job_tag'] loop
    execute format('select least($1, (select id from %I where id >= $2 and id < $1 order by id offset $3 limit 1))',
                   v_table)
    into v_upto using v_upto, v_dropped.next_id, p_limit;
  end loop;
  foreach v_table in array array['output', 'failed_attempt', 'job_tag'] loop
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
