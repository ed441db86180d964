-- Lanes: finding the lane of a queue, a type and a priority, and making it for the first job that needs it.

-- Several transactions may need the same new lane at once. The advisory lock lets one of them make it. The others wait a
-- few milliseconds, but not for a transaction that stays open: then each makes a lane of its own, which is as good.
create or replace function lane_of(
  p_queue text, p_type text, p_priority smallint, p_group_size smallint default 0, p_kind text default 'plain'
) returns int
language plpgsql as $$
declare
  c_tries constant int := 10;
  c_seconds constant float8 := 0.005;
  v_lane      int;
  v_has_lock  boolean := false;
begin
  for n in 0 .. c_tries loop
    select lane into v_lane
    from lane
    where queue = p_queue and type = p_type and priority = p_priority and group_size = p_group_size and kind = p_kind
    order by lane
    limit 1;
    exit when v_lane is not null or n = c_tries;
    -- With the lock it looks once more: another transaction may have committed the lane in between.
    if not pg_try_advisory_xact_lock(hashtextextended(
         format('sluice.lane.%s.%s.%s.%s.%s.%s', current_schema(), p_queue, p_type, p_priority, p_group_size, p_kind),
         0)) then
      perform pg_sleep(c_seconds);
    elsif v_has_lock then
      exit;
    else
      v_has_lock := true;
    end if;
  end loop;
  if v_lane is null then
    perform refuse_bad_name('type', p_type), refuse_bad_name('queue', p_queue);
    if p_group_size = 0 and p_kind not in ('returns', 'ends') then -- those are made for jobs that are stored already: never refused
      perform refuse_too_many_lanes(p_queue);
    end if;
    insert into lane (queue, type, priority, group_size, kind)
    values (p_queue, p_type, p_priority, p_group_size, p_kind)
    returning lane into v_lane;
  end if;
  return v_lane;
end $$;

-- The lane that a queue's ended turns are written to.
create or replace function returns_lane_of(p_queue text) returns int
language plpgsql as $$
begin
  return coalesce((select lane from lane where queue = p_queue and kind = 'returns' order by lane limit 1),
                  lane_of(p_queue, 'sluice.returns', 0::smallint, p_kind => 'returns'));
end $$;

-- The lane that events for a queue's waiting jobs are written to.
create or replace function ends_lane_of(p_queue text) returns int
language plpgsql as $$
begin
  return coalesce((select lane from lane where queue = p_queue and kind = 'ends' order by lane limit 1),
                  lane_of(p_queue, 'sluice.ends', 0::smallint, p_kind => 'ends'));
end $$;

-- The lane of each job, in the order of the jobs. lane_of is called once for each lane: a call costs more than the join.
create or replace function lanes_of(p_jobs new_job[], p_are_of_one_lane boolean) returns int[]
language plpgsql as $$
declare
  v_lanes int[];
begin
  if p_are_of_one_lane then
    return array_fill(
      lane_of(coalesce(p_jobs[1].queue, 'default'), p_jobs[1].type, coalesce(p_jobs[1].priority, 5::smallint),
              p_kind => kind_of(p_jobs[1].partition_key, p_jobs[1].fair_key)),
      array[cardinality(p_jobs)]);
  end if;
  with wanted as materialized (
    select coalesce(job.queue, 'default') as queue, job.type, coalesce(job.priority, 5::smallint) as priority,
           kind_of(job.partition_key, job.fair_key) as kind, ordinality
    from unnest(p_jobs) with ordinality as job
  ),
  found as materialized (
    select queue, type, priority, kind, lane_of(queue, type, priority, p_kind => kind) as lane
    from (select distinct queue, type, priority, kind from wanted) as name
  )
  select array_agg(found.lane order by ordinality) into v_lanes
  from wanted join found using (queue, type, priority, kind);
  return v_lanes;
end $$;

-- Called only for a new lane: a name that has a lane was checked when the lane was made.
create or replace function refuse_bad_name(p_field text, p_name text) returns void
language plpgsql as $$
begin
  if p_name is null or p_name !~ '^[a-z][a-z0-9_.-]{0,62}$' then
    perform refuse(format('%s: lower case letters, digits, ".", "_" and "-", at most 63, a letter first', p_field));
  end if;
end $$;

-- Every round looks at every lane, so their number is bounded: queues by the setting sluice.max_queues, lanes by five
-- times that. They are counted only when a lane is made. Lanes that other transactions make at the same moment are not
-- counted, so the bound may be exceeded by as many as there are such transactions.
create or replace function refuse_too_many_lanes(p_queue text) returns void
language plpgsql as $$
declare
  v_max      int := coalesce(nullif(current_setting('sluice.max_queues', true), ''), '1000');
  v_queues   int;
  v_lanes    int;
  v_is_new   boolean;
begin
  select count(distinct queue), count(*), coalesce(bool_and(queue <> p_queue), true)
  into v_queues, v_lanes, v_is_new
  from lane
  where group_size = 0 and kind not in ('returns', 'ends');
  if v_queues >= v_max and v_is_new then
    perform refuse(format('queue: there are %s queues already and no more are made, use one of them '
                          'or raise sluice.max_queues', v_queues));
  elsif v_lanes >= 5 * v_max then
    perform refuse(format('queue: there are %s combinations of queue, type and priority already and no more are made, '
                          'use one of them or raise sluice.max_queues', v_lanes));
  end if;
end $$;
