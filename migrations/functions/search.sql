-- search: a page of jobs that fit a filter, newest first. Each status is read from the table that holds it, by id, and only
-- within the spans of the wanted lanes (spans.sql). A search looks at so many rows and no more. If it stops before the page is
-- full, it says how far it came, and the next search goes on from there. So a page costs the same for any number of jobs.
-- The functions below run with the planner settings of search_jobs(), which calls them.

-- The candidates among the next p_rows rows with ids from p_low on and below p_high. `last` is the last id that was looked at;
-- null: there are no more. `scheduled` is the part of pending that is not due.
create or replace function look_at_jobs(
  p_search job_search, p_low uuid, p_high uuid, p_rows int, out ids uuid[], out last uuid
)
language plpgsql stable
set search_path from current
as $$
declare
  v_looked uuid[];
begin
  if p_search.tag is not null then
    select array_agg(id), array_agg(id) into ids, v_looked
    from (select id from job_tag where tag = p_search.tag and id >= p_low and id < p_high order by id desc limit p_rows) as tagged;
  elsif p_search.status is null or p_search.is_checked then
    select array_agg(id order by id desc) filter (where fits), array_agg(id order by id desc) into ids, v_looked
    from (
      select id, (p_search.is_any_lane or lane = any(p_search.lanes))
                 and (p_search.partition_key is null or partition_key = p_search.partition_key)
                 and (p_search.fair_key is null or fair_key = p_search.fair_key) as fits
      from job where id >= p_low and id < p_high order by id desc limit p_rows
    ) as looked;
  else
    select array_agg(id order by id desc) filter (where p_search.is_any_lane or abs(lane) = any(p_search.lanes)),
           array_agg(id order by id desc)
    into ids, v_looked
    from (
      select id, lane
      from (
        (select id, lane from ready
         where p_search.status = 'pending' and returned is null and id >= p_low and id < p_high order by id desc limit p_rows)
        union all
        (select id, lane from scheduled
         where p_search.status in ('pending', 'scheduled') and id >= p_low and id < p_high order by id desc limit p_rows)
        union all
        (select id, lane from blocked
         where p_search.status = 'blocked' and id >= p_low and id < p_high order by id desc limit p_rows)
        union all
        -- Rows are compared, so that a plan for any status must use the index that has both.
        (select id, lane from closed
         where (status, id) >= (p_search.status, p_low) and (status, id) < (p_search.status, p_high)
         order by status desc, id desc limit p_rows)
      ) as held
      order by id desc limit p_rows
    ) as looked;
  end if;
  ids := coalesce(ids, '{}');
  last := v_looked[p_rows];
end $$;

-- Those of the candidates that fit, in their order.
create or replace function check_jobs(p_search job_search, p_ids uuid[]) returns uuid[]
language sql stable
set search_path from current
as $$
  select array(
    select candidate.id
    from unnest(p_ids) with ordinality as candidate(id, place)
    -- Fences: each job is looked up by its id.
    cross join lateral (
      select from job
      where job.id = candidate.id
        and ((p_search).is_any_lane or lane = any((p_search).lanes))
        and ((p_search).partition_key is null or partition_key = (p_search).partition_key)
        and ((p_search).fair_key is null or fair_key = (p_search).fair_key)
      offset 0
    ) as stored
    cross join lateral (
      select from jobs where jobs.id = candidate.id and ((p_search).status is null or jobs.status = (p_search).status) offset 0
    ) as found
    order by candidate.place)
$$;

-- Walks through the spans, newest first. A look at a span counts as 50 rows, and so does each job that is looked up.
create or replace function walk_jobs(
  p_search job_search, p_after uuid, p_before uuid, p_limit int, p_budget int, out ids uuid[], out searched_to uuid
)
language plpgsql stable
set search_path from current
as $$
declare
  v_left int := p_budget;
  v_rows int := p_limit;
  v_high uuid := p_before;
  v_span record;
  v_look record;
begin
  ids := '{}';
  for v_span in
    select low, high from id_spans(p_search.lanes, p_after, p_before) where p_search.has_spans
    union all
    select p_after, p_before where not p_search.has_spans
  loop
    v_high := least(v_high, v_span.high);
    while v_span.low < v_high loop
      if v_left <= 0 then
        searched_to := v_high;
        return;
      end if;
      v_look := look_at_jobs(p_search, v_span.low, v_high, v_rows);
      if p_search.is_checked then
        v_left := v_left - 50 * cardinality(v_look.ids);
        v_look.ids := check_jobs(p_search, v_look.ids);
      end if;
      ids := (ids || v_look.ids)[1:p_limit];
      if cardinality(ids) = p_limit then
        searched_to := ids[p_limit];
        return;
      end if;
      v_left := v_left - case when v_look.last is null then 50 else v_rows end;
      v_high := coalesce(v_look.last, v_span.low);
      v_rows := least(v_rows * 8, p_budget / 4);
      if p_search.is_checked then
        v_rows := least(v_rows, 4 * p_limit);
      end if;
    end loop;
  end loop;
end $$;

-- Completed jobs stand in rows of many ids. The rows come by their newest id, until the page is full and the next row has
-- nothing newer.
create or replace function walk_completed(
  p_search job_search, p_after uuid, p_before uuid, p_limit int, p_budget int, out ids uuid[], out searched_to uuid
)
language plpgsql stable
set search_path from current
as $$
declare
  v_left int := p_budget;
  v_high uuid := p_before;
  v_span record;
  v_row  record;
begin
  ids := '{}';
  for v_span in
    select low, high from id_spans(p_search.lanes, p_after, p_before) where p_search.has_spans
    union all
    select p_after, p_before where not p_search.has_spans
  loop
    v_high := least(v_high, v_span.high);
    continue when v_span.low >= v_high;
    v_left := v_left - 50;
    for v_row in
      select hi_id, done.ids, lane from done
      where hi_id >= v_span.low and hi_id <= end_of_bucket(v_high) and lo_id < v_high
      order by hi_id desc
    loop
      if cardinality(ids) = p_limit and ids[p_limit] > v_row.hi_id then
        searched_to := ids[p_limit];
        return;
      end if;
      if p_search.is_any_lane or v_row.lane = any(p_search.lanes) then
        ids := array( -- distinct: a row that lies in two spans is read twice
          select distinct id from unnest(ids || v_row.ids) as id
          where id < p_before and id >= p_after order by id desc limit p_limit);
      end if;
      continue when v_row.hi_id >= v_high; -- the page before has read it, too
      v_left := v_left - 1;
      if v_left <= 0 then
        searched_to := v_row.hi_id; -- rows that were not read have lower ids only
        ids := array(select id from unnest(ids) as id where id >= searched_to order by id desc);
        return;
      end if;
    end loop;
    v_high := v_span.low;
  end loop;
  searched_to := ids[p_limit];
end $$;

-- How many jobs of these lanes are in a status, as the books have it.
create or replace function booked_jobs(p_lanes int[], out pending bigint, out scheduled bigint, out blocked bigint, out leased bigint,
                                       out completed bigint, out dead bigint, out discarded bigint, out cancelled bigint)
language sql stable
set search_path from current
as $$
  select coalesce(sum(entry.pending), 0), coalesce(sum(entry.scheduled), 0), coalesce(sum(entry.blocked), 0),
         coalesce(sum(entry.leased), 0), coalesce(sum(entry.completed), 0), coalesce(sum(entry.dead), 0),
         coalesce(sum(entry.discarded), 0), coalesce(sum(entry.cancelled), 0)
  from (
    select tally.pending, tally.scheduled, tally.blocked, tally.leased, tally.completed, tally.dead, tally.discarded, tally.cancelled
    from tally where minute = '-infinity' and lane = any(p_lanes)
    union all
    select ledger.pending, ledger.scheduled, ledger.blocked, ledger.leased, ledger.completed, ledger.dead, ledger.discarded, ledger.cancelled
    from ledger where lane = any(p_lanes)
  ) as entry
$$;

-- Pending jobs of lanes that have few due ones: these are read by lane, and only the scheduled ones by id.
create or replace function few_pending(
  p_search job_search, p_has_scheduled boolean, p_after uuid, p_before uuid, p_limit int, p_budget int,
  out ids uuid[], out searched_to uuid
)
language plpgsql stable
set search_path from current
as $$
declare
  v_due   uuid[];
  v_later record;
begin
  v_due := array(
    with due as materialized ( -- a fence: by the index of lanes, and not by that of ids, which would read the jobs of all others
      select id from ready
      where lane = any(p_search.lanes || array(select -lane from unnest(p_search.lanes) as lane)) and returned is null
    )
    select id from due where id >= p_after and id < p_before order by id desc limit p_limit);
  if p_has_scheduled then
    p_search.status := 'scheduled';
    v_later := walk_jobs(p_search, p_after, p_before, p_limit, p_budget);
    v_due := v_due || v_later.ids;
    searched_to := v_later.searched_to;
  end if;
  -- What is older than the end of the walk belongs to the next page.
  ids := array(select id from unnest(v_due) as id where searched_to is null or id >= searched_to order by id desc limit p_limit);
  searched_to := coalesce(ids[p_limit], searched_to);
end $$;

-- The ids of a page, and how far the search came; null: to the end. The jobs before `searched_to` are those of the next pages.
create or replace function search_jobs(
  p_types text[], p_status text, p_queue text, p_tag text, p_partition_key text, p_fair_key text,
  p_idempotency_key text, p_since timestamptz, p_until timestamptz, p_before uuid, p_limit int, p_budget int default 20000, out ids uuid[], out searched_to uuid
)
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  c_last   constant uuid := 'ffff0000-0000-0000-0000-000000000000'; -- the ids of slots are higher (plan-slots.sql)
  v_before uuid := least(p_before, id_at(p_until), c_last);
  v_after  uuid := coalesce(id_at(p_since), '00000000-0000-0000-0000-000000000000');
  v_search job_search;
  v_booked jsonb; -- null: not asked for
begin
  v_search := search_of(p_types, p_status, p_queue, p_tag, p_partition_key, p_fair_key);
  ids := '{}';
  if p_idempotency_key is not null then
    ids := check_jobs(v_search, array(
      select id from idempotency
      where key_hash = key_hash_of(p_idempotency_key) and id >= v_after and id < v_before limit p_limit));
    return;
  end if;
  if v_search.has_spans and not v_search.is_checked and p_status is not null then
    v_booked := to_jsonb(booked_jobs(v_search.lanes));
    if 0 = (v_booked ->> case p_status when 'processing' then 'leased' else p_status end)::bigint then
      return;
    end if;
  end if;
  if v_search.is_checked or p_status is null then
    select * into ids, searched_to from walk_jobs(v_search, v_after, v_before, p_limit, p_budget);
  elsif p_status = 'processing' then
    ids := array(
      select id from lease cross join unnest(lease.ids) as id
      where id >= v_after and id < v_before and lane = any(v_search.lanes) order by id desc limit p_limit);
    searched_to := ids[p_limit];
  elsif p_status = 'completed' then
    select * into ids, searched_to from walk_completed(v_search, v_after, v_before, p_limit, p_budget);
  elsif p_status = 'pending' and (v_booked ->> 'pending')::int - (v_booked ->> 'scheduled')::int <= p_budget / 4 then
    select * into ids, searched_to
    from few_pending(v_search, v_booked ->> 'scheduled' <> '0', v_after, v_before, p_limit, p_budget);
  else
    select * into ids, searched_to from walk_jobs(v_search, v_after, v_before, p_limit, p_budget);
  end if;
end $$;

-- Only a few lanes are worth their spans: those of a type, of a queue, or of jobs with keys.
create or replace function search_of(
  p_types text[], p_status text, p_queue text, p_tag text, p_partition_key text, p_fair_key text
) returns job_search
language sql stable
set search_path from current
as $$
  select row(
    p_status,
    array(
      select lane from lane
      where kind not in ('returns', 'ends') and (p_types is null or type = any(p_types)) and (p_queue is null or queue = p_queue)
        and (p_partition_key is null or kind = 'ordered') and (p_fair_key is null or kind = 'fair')
        -- the canary shows only where it is asked for
        and (p_types is not null or p_queue is not null or type <> 'sluice.canary')),
    not is_filtered and not exists (select from lane where type ~ '^sluice\.(canary|ends)$'),
    is_filtered,
    p_tag, p_partition_key, p_fair_key,
    p_tag is not null and (is_filtered or p_status is not null) or has_key and p_status is not null)::job_search
  from (
    select coalesce(p_partition_key, p_fair_key) is not null as has_key,
           p_types is not null or coalesce(p_queue, p_partition_key, p_fair_key) is not null as is_filtered
  ) as filter
$$;
