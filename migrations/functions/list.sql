-- list: jobs by type, status, queue and tag, newest first, a page at a time (`p_before` is the last id of the page
-- before). Each status is read from the table that holds it; every way ends in look-ups by id.

create or replace function list_jobs(
  p_type text, p_status text, p_queue text, p_tag text, p_before uuid, p_limit int
) returns setof jobs
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  c_last   constant uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  v_before uuid := coalesce(p_before, c_last);
  v_lanes  int[] := array(
    select lane from lane where (p_type is null or type = p_type) and (p_queue is null or queue = p_queue));
  v_any    boolean := p_type is null and p_queue is null;
  v_ids    uuid[];
begin
  if p_tag is not null then
    v_ids := array(
      select job_tag.id
      from job_tag join jobs using (id)
      where tag = p_tag and job_tag.id < v_before
        and (p_status is null or jobs.status = p_status)
        and (p_type is null or jobs.type = p_type) and (p_queue is null or jobs.queue = p_queue)
      order by job_tag.id desc limit p_limit);
  elsif p_status = 'pending' then
    v_ids := array(
      select id from (
        (select id from ready where id < v_before and (v_any or lane = any(v_lanes)) order by id desc limit p_limit)
        union all
        (select id from scheduled where id < v_before and (v_any or lane = any(v_lanes)) order by id desc limit p_limit)
      ) as pending order by id desc limit p_limit);
  elsif p_status = 'processing' then
    v_ids := array(
      select id from lease cross join unnest(ids) as id
      where id < v_before and lane = any(v_lanes)
      order by id desc limit p_limit);
  elsif p_status in ('dead', 'discarded', 'cancelled') then
    v_ids := array(
      select id from closed
      where status = p_status and id < v_before and (v_any or lane = any(v_lanes))
      order by id desc limit p_limit);
  else
    v_ids := array(
      select job.id from job
      where job.id < v_before and (v_any or lane = any(v_lanes))
        and (p_status is null
             or not exists (select from ready where ready.id = job.id)
                and not exists (select from scheduled where scheduled.id = job.id)
                and not exists (select from closed where closed.id = job.id)
                and exists (
                  select from done
                  where hi_id >= job.id and hi_id <= end_of_bucket(job.id) and lo_id <= job.id and job.id = any(ids)))
      order by job.id desc limit p_limit);
  end if;
  return query
    select jobs.* from unnest(v_ids) as page(id) join jobs on jobs.id = page.id order by jobs.id desc;
end $$;
