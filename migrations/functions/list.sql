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
