-- list: pages of jobs.

-- The jobs with these ids, in their order.
create or replace function show_jobs(p_ids uuid[]) returns setof jobs
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
begin
  return query
    select found.*
    from unnest(p_ids) with ordinality as page(id, place)
    cross join lateral (select * from jobs where jobs.id = page.id offset 0) as found -- a fence: look-ups by id
    order by page.place;
end $$;

-- The list of Workers of the release before: it goes on until the page is full. Remove it with the next release.
create or replace function list_jobs(
  p_types text[], p_status text, p_queue text, p_tag text, p_before uuid, p_limit int
) returns setof jobs
language plpgsql stable
security definer
set search_path from current
as $$
declare
  v_ids  uuid[] := '{}';
  v_page record;
begin
  loop
    v_page := search_jobs(p_types, p_status, p_queue, p_tag, null, null, null, null, null, p_before, p_limit - cardinality(v_ids));
    v_ids := v_ids || v_page.ids;
    p_before := v_page.searched_to;
    exit when cardinality(v_ids) = p_limit or p_before is null;
  end loop;
  return query select * from show_jobs(v_ids);
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
