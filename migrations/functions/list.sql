-- list: jobs by types, status, queue and tag, newest first, a page at a time (`p_before` is the last id of the previous
-- page). Each status is read from the table that holds it. Every branch ends in look-ups by id.

-- Completed jobs stand in rows of many ids. The rows come by their newest id, until the page is full and the next row has
-- nothing newer. It runs with the planner settings of list_jobs().
create or replace function completed_ids(p_before uuid, p_any boolean, p_lanes int[], p_limit int) returns uuid[]
language plpgsql stable
set search_path from current
as $$
declare
  v_ids uuid[] := '{}';
  v_row record;
begin
  for v_row in
    select hi_id, ids from done
    where hi_id <= end_of_bucket(p_before) and lo_id < p_before and (p_any or lane = any(p_lanes))
    order by hi_id desc
  loop
    exit when cardinality(v_ids) = p_limit and v_ids[p_limit] > v_row.hi_id;
    v_ids := array(
      select id from unnest(v_ids || v_row.ids) as id where id < p_before order by id desc limit p_limit);
  end loop;
  return v_ids;
end $$;

create or replace function list_jobs(
  p_types text[], p_status text, p_queue text, p_tag text, p_before uuid, p_limit int
) returns setof jobs
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_custom_plan -- a filter that is null drops out of the plan
as $$
#variable_conflict use_column
declare
  c_last   constant uuid := 'ffff0000-0000-0000-0000-000000000000'; -- the ids of slots are higher (plan-slots.sql)
  v_before uuid := least(p_before, c_last);
  v_lanes  int[] := array(
    select lane from lane
    where kind not in ('returns', 'ends') and (p_types is null or type = any(p_types)) and (p_queue is null or queue = p_queue)
      and (p_types is not null or p_queue is not null or type <> 'sluice.canary')); -- the canary shows only where it is asked for
  v_any    boolean := p_types is null and p_queue is null and not exists (select from lane where type ~ '^sluice\.(canary|ends)$');
  v_ids    uuid[];
begin
  if p_tag is not null then
    v_ids := array(
      select tagged.id
      from (select id from job_tag where tag = p_tag and id < v_before order by id desc) as tagged
      cross join lateral (
        select from jobs
        where jobs.id = tagged.id
          and (p_status is null or jobs.status = p_status)
          and (p_types is null or jobs.type = any(p_types)) and (p_queue is null or jobs.queue = p_queue)
        offset 0 -- a fence: each job is looked up by its id, and only until the page is full
      ) as wanted
      limit p_limit);
  elsif p_status = 'pending' then
    v_ids := array(
      select id from (
        (select id from ready
         where id < v_before and returned is null and (v_any or abs(lane) = any(v_lanes)) order by id desc limit p_limit)
        union all
        (select id from scheduled
         where id < v_before and (v_any or abs(lane) = any(v_lanes)) order by id desc limit p_limit)
      ) as pending order by id desc limit p_limit);
  elsif p_status = 'processing' then
    v_ids := array(
      select id from lease cross join unnest(ids) as id
      where id < v_before and lane = any(v_lanes)
      order by id desc limit p_limit);
  elsif p_status = 'blocked' then
    v_ids := array(
      select id from blocked where id < v_before and abs(lane) = any(v_lanes) order by id desc limit p_limit);
  elsif p_status in ('dead', 'discarded', 'cancelled') then
    v_ids := array(
      select id from closed
      where status = p_status and id < v_before and (v_any or lane = any(v_lanes))
      order by id desc limit p_limit);
  elsif p_status = 'completed' then
    v_ids := completed_ids(v_before, v_any, v_lanes, p_limit);
  else
    v_ids := array(
      select job.id from job
      where job.id < v_before and (v_any or lane = any(v_lanes))
      order by job.id desc limit p_limit);
  end if;
  return query
    select found.*
    from unnest(v_ids) as page(id)
    cross join lateral (select * from jobs where jobs.id = page.id offset 0) as found -- the same fence
    order by page.id desc;
end $$;

-- Lists dead letters, the last death first, a page at a time. p_before_micros and p_before_id: the last death of the page before.
-- A filter is answered from its groups: a step into the index for each of them, however many other dead letters there are. If
-- there are too many groups, or dead letters in no group yet, it reads all dead letters in order.
create or replace function dead_letters(
  p_type text, p_reason text, p_fingerprint bigint, p_queue text, p_since timestamptz, p_until timestamptz,
  p_before_micros bigint, p_before_id uuid, p_limit int
) returns setof jobs
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_custom_plan -- a filter that is null drops out of the plan
as $$
declare
  c_groups constant int := 200;
  c_first  constant uuid := '00000000-0000-0000-0000-000000000000';
  v_lanes  int[] := lanes_matching(p_type, p_queue);
  v_before timestamptz := coalesce(to_timestamp(0) + p_before_micros * interval '1 microsecond', 'infinity');
  v_ids    uuid[];
  v_groups dead_group[] := array(
    select row(lane, reason, fingerprint, 0, null, null)::dead_group from dead_counts
    where lane = any(v_lanes) and (p_reason is null or reason = p_reason)
      and (p_fingerprint is null or fingerprint = p_fingerprint)
    group by lane, reason, fingerprint limit c_groups + 1);
begin
  if cardinality(v_groups) <= c_groups
     and not exists (select from closed where status = 'dead' and fingerprint is null) then
    v_ids := array(
      select dead.id from unnest(v_groups) as kind
      cross join lateral (
        select id, closed_at from closed
        where status = 'dead' and lane = kind.lane and reason = kind.reason and fingerprint = kind.fingerprint
          and (closed_at, id) < (v_before, coalesce(p_before_id, c_first))
          and (p_since is null or closed_at >= p_since) and (p_until is null or closed_at <= p_until)
        order by closed_at desc, id desc limit p_limit
      ) as dead
      order by dead.closed_at desc, dead.id desc limit p_limit);
  else
    v_ids := array(
      select id from closed
      where status = 'dead' and lane = any(v_lanes) and (p_reason is null or reason = p_reason)
        and (p_fingerprint is null or fingerprint = p_fingerprint)
        and (closed_at, id) < (v_before, coalesce(p_before_id, c_first))
        and (p_since is null or closed_at >= p_since) and (p_until is null or closed_at <= p_until)
      order by closed_at desc, id desc limit p_limit);
  end if;
  return query
    select found.*
    from unnest(v_ids) with ordinality as page(id, number)
    cross join lateral (select * from jobs where jobs.id = page.id offset 0) as found -- a fence: look-ups by id
    order by page.number;
end $$;

-- Lists dead jobs alone, newest first. For the Worker of the release before.
create or replace function list_dead_letters(p_type text, p_reason text, p_before uuid, p_limit int) returns setof jobs
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_custom_plan -- a filter that is null drops out of the plan
as $$
begin
  return query
    select found.*
    from (
      select id from closed
      where status = 'dead'
        and (p_before is null or id < p_before)
        and (p_type is null or lane = any(array(select lane.lane from lane where lane.type = p_type)))
        and (p_reason is null or reason = p_reason)
      order by id desc
      limit p_limit
    ) as page
    cross join lateral (select * from jobs where jobs.id = page.id offset 0) as found -- a fence: look-ups by id
    order by page.id desc;
end $$;

-- Lists the jobs of a flow, oldest first. p_after: the last id of the page before.
create or replace function flow_jobs(p_id uuid, p_after uuid, p_limit int) returns setof jobs
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
begin
  return query
    select found.*
    from unnest(ids_of_flow(p_id, p_after, p_limit)) as page(id)
    cross join lateral (select * from jobs where jobs.id = page.id offset 0) as found
    order by page.id;
end $$;
