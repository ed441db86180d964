-- insert blocked: new jobs that wait for others (`after`). Edges between jobs of one call need no judgement: nobody can have ended
-- them. Other blockers are judged after the commit, by an event (judge-edges.sql), so an enqueue locks nothing.

-- The ids of the jobs of a call: those that were just written, or the ones that have their idempotency keys.
create or replace function ids_of_jobs(p_jobs new_job[], p_stem text, p_duplicates bigint[]) returns uuid[]
language plpgsql as $$
begin
  return array(
    select case when number = any(p_duplicates)
                then (select id from idempotency where key_hash = key_hash_of(idempotency_key))
                else numbered_id(p_stem, number) end
    from unnest(p_jobs) with ordinality as job(type, payload, queue, priority, max_attempts, delay_seconds, scheduled_at,
      expires_at, idempotency_key, partition_key, traceparent, tags, fair_key, after, on_blocker_dead, debounce, throttle, number)
    order by number);
end $$;

create or replace function insert_links(
  p_jobs new_job[], p_refs text[], p_stem text, p_duplicates bigint[], p_lanes int[], p_now timestamptz,
  p_have_after boolean, p_flow uuid, p_flows uuid[]
) returns void
language plpgsql as $$
begin
  if p_have_after then
    perform insert_blocked(p_jobs, p_refs, ids_of_jobs(p_jobs, p_stem, p_duplicates), p_duplicates, p_lanes, p_now);
  end if;
  if p_flow is not null or p_flows is not null then
    perform count_in_flows(p_flow, numbered_id(p_stem, cardinality(p_jobs)), p_flows);
  end if;
end $$;

-- A plain list is the slot `jobs`.
create or replace function slots_of_after(after jsonb) returns jsonb
language sql stable -- as jsonb_build_object is: declared immutable it could not be inlined
return case when jsonb_typeof(after) = 'array' then jsonb_build_object('jobs', after) else after end;

create or replace function insert_blocked(
  p_jobs new_job[], p_refs text[], p_ids uuid[], p_duplicates bigint[], p_lanes int[], p_now timestamptz
) returns void
language plpgsql as $$
declare
  v_after  record := read_after(p_jobs, p_refs, p_ids, p_duplicates);
  v_events end_event[];
begin
  -- The lanes of events come before the statement that writes: ends_lane_of inserts a lane that is missing.
  with line as materialized (
    select queue, ends_lane_of(queue) as ends_lane
    from (select distinct coalesce(queue, 'default') as queue from unnest(p_jobs) where after is not null) as name
  ),
  entry as materialized (
    select * from unnest(v_after.owners, v_after.slots, v_after.blockers, v_after.are_inside) with ordinality
      as entry(owner, slot, blocker, is_inside, number)
  ),
  counted as (
    select owner, array_agg(distinct blocker) as edges, bool_and(is_inside) as is_inside,
           array_agg(blocker order by number) as blockers
    from entry group by owner
  ),
  waiting as materialized (
    select nextval('wait_number') as wait, p_ids[job.number] as id, job.number as owner, line.queue, line.ends_lane,
           coalesce(counted.edges, '{}') as edges, coalesce(counted.is_inside, false) as is_inside,
           p_lanes[job.number] as lane, key_of_job(line.queue, job.partition_key, job.fair_key) as key,
           run_at_of(job.delay_seconds, job.scheduled_at, p_now) as run_at,
           coalesce(counted.blockers, '{}') as blockers, coalesce(job.on_blocker_dead, 'die') = 'die' as dies, job.after
    from unnest(p_jobs) with ordinality as job(type, payload, queue, priority, max_attempts, delay_seconds, scheduled_at,
      expires_at, idempotency_key, partition_key, traceparent, tags, fair_key, after, on_blocker_dead, debounce, throttle, number)
    join line on line.queue = coalesce(job.queue, 'default')
    left join counted on counted.owner = job.number
    where job.after is not null and job.number <> all(p_duplicates)
  ),
  stored as (
    insert into blocked (wait, id, lane, key, run_at, togo)
    select wait, id, case when key is null then lane else -lane end, key, run_at, cardinality(edges) from waiting
  ),
  edges as (
    insert into edge (blocker, wait, lane, dies)
    select blocker, wait, ends_lane, dies from waiting cross join lateral unnest(edges) as blocker
  ),
  kept as (
    insert into dependency (id, slots, sizes, blockers, dies)
    select id, slot.names, slot.sizes, blockers, dies
    from waiting
    cross join lateral (
      select coalesce(array_agg(key order by key collate "C"), '{}') as names,
             coalesce(array_agg(jsonb_array_length(value) order by key collate "C"), '{}') as sizes
      from jsonb_each(slots_of_after(after))
    ) as slot
  )
  select array_agg(row(ends_lane, wait, -1, null)::end_event) filter (where not is_inside) into v_events from waiting;
  perform append_ends(v_events);
end $$;

-- The id in an entry of `after`, as a text. In a flow a text is a ref, and a job outside of it is { job_id }. Inlined.
create or replace function id_of_entry(entry jsonb) returns text
language sql immutable
return case jsonb_typeof(entry) when 'object' then entry ->> 'job_id' when 'string' then entry #>> '{}' end;

-- What the jobs' `after` say, one entry for each blocker: the job's number, the slot, the blocker's chain, and whether it was
-- written by the same call.
create or replace function read_after(
  p_jobs new_job[], p_refs text[], p_ids uuid[], p_duplicates bigint[],
  out owners bigint[], out slots text[], out blockers uuid[], out are_inside boolean[]
)
language plpgsql as $$
declare
  v_entries jsonb[];
  v_numbers bigint[]; -- of the blocker in the call; null: it is another job
begin
  perform refuse('after: must be a list of jobs, or an object with a list for each slot')
  from unnest(p_jobs)
  where after is not null and (jsonb_typeof(after) not in ('array', 'object')
    or jsonb_typeof(after) = 'object' and jsonb_path_exists(after, 'strict $.* ? (@.type() != "array")'));
  with entry as materialized (
    select job.number as owner, slot.name as slot, element.value, element.number,
           case when p_refs is not null and jsonb_typeof(element.value) = 'string' then element.value #>> '{}' end as ref
    from unnest(p_jobs) with ordinality as job(type, payload, queue, priority, max_attempts, delay_seconds, scheduled_at,
      expires_at, idempotency_key, partition_key, traceparent, tags, fair_key, after, on_blocker_dead, debounce, throttle, number)
    cross join lateral (
      select key as name, value as list from jsonb_each(slots_of_after(after))
    ) as slot
    cross join lateral jsonb_array_elements(slot.list) with ordinality as element(value, number)
    where job.after is not null
  )
  select array_agg(owner order by owner, slot collate "C", entry.number), array_agg(slot order by owner, slot collate "C", entry.number),
         array_agg(value order by owner, slot collate "C", entry.number), array_agg(job.number order by owner, slot collate "C", entry.number)
  into owners, slots, v_entries, v_numbers
  from entry left join unnest(p_refs) with ordinality as job(ref, number) using (ref);
  perform refuse(format('after: no job of the flow has the ref "%s"', entry #>> '{}'))
  from unnest(v_entries, v_numbers) as listed(entry, number)
  where p_refs is not null and number is null and jsonb_typeof(entry) = 'string'
  limit 1;
  perform refuse(format('after: %s is not the id of a job', entry))
  from unnest(v_entries, v_numbers) as listed(entry, number)
  where number is null and (id_of_entry(entry) ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$') is not true
  limit 1;
  blockers := array(select case when number is not null then p_ids[number] else id_of_entry(entry)::uuid end
                    from unnest(v_entries, v_numbers) with ordinality as listed(entry, number, place) order by place);
  if p_refs is not null then
    perform refuse_cycle(p_refs, owners, v_numbers);
  end if;
  are_inside := array(select number is not null and number <> all(p_duplicates)
                      from unnest(v_numbers) with ordinality as entry(number, place) order by place);
  if false = any(are_inside) then
    blockers := chains_of(blockers, are_inside);
    are_inside := link_own(blockers, are_inside);
  end if;
end $$;

-- Jobs that the same transaction has enqueued before, in another call, are linked at once: nobody else can see them yet.
create or replace function link_own(p_blockers uuid[], p_are_inside boolean[]) returns boolean[]
language plpgsql as $$
declare
  v_own uuid[];
begin
  if pg_current_xact_id_if_assigned() is null then
    return p_are_inside;
  end if;
  v_own := array(select id from job where id = any(p_blockers) and xmin = pg_current_xact_id()::xid);
  if v_own = '{}' then
    return p_are_inside;
  end if;
  v_own := array(select id from ready where id = any(v_own))
    || array(select id from scheduled where id = any(v_own))
    || array(select id from blocked where id = any(v_own));
  update job set chain = id where id = any(v_own) and chain is null;
  return array(
    select is_inside or own.id is not null
    from unnest(p_blockers, p_are_inside) with ordinality as entry(id, is_inside, number)
    left join unnest(v_own) as own(id) on own.id = entry.id
    order by number);
end $$;

-- The chain of each job. An id that no job has is refused, unless it is older than the history: then it was pruned.
create or replace function chains_of(p_ids uuid[], p_are_inside boolean[]) returns uuid[]
language plpgsql as $$
declare
  v_chains  uuid[];
  v_unknown uuid;
begin
  select array_agg(case when is_inside then entry.id else coalesce(job.chain, entry.id) end order by number),
         (array_agg(entry.id order by entry.id desc) filter (where not is_inside and job.id is null))[1]
  into v_chains, v_unknown
  from unnest(p_ids, p_are_inside) with ordinality as entry(id, is_inside, number)
  left join (select id, chain from job where id = any(p_ids)) as job on job.id = entry.id;
  if v_unknown is not null and (time_of_id(v_unknown) is null or v_unknown >= oldest_kept_id()) then
    perform refuse(format('after: there is no job %s', v_unknown));
  end if;
  return v_chains;
end $$;

-- Jobs with lower ids may have been pruned: their days were dropped. Without any days all jobs are in the default partition.
create or replace function oldest_kept_id() returns uuid
language sql stable as $$
  select coalesce(start_of_day(min(right(inhrelid::regclass::text, 8)::date)), id_at(now() - interval '7 days'))
  from pg_inherits
  where inhparent = 'job'::regclass and inhrelid <> 'job_default'::regclass
$$;

-- Takes away the jobs that wait for nobody in the flow, again and again. If some are left, they wait for each other.
create or replace function refuse_cycle(p_refs text[], p_owners bigint[], p_blockers bigint[]) returns void
language plpgsql as $$
declare
  v_left   int[];      -- how many blockers of each job are left
  v_from   int[];      -- where each job's dependents begin in v_after
  v_after  int[];
  v_free   int[];
  v_next   int := 1;
  v_job    int;
  v_path   text[] := '{}';
begin
  if not exists (select from unnest(p_owners, p_blockers) as entry(owner, blocker) where blocker >= owner) then
    return; -- all blockers come before their dependents
  end if;
  select array_agg(coalesce(jobs, 0) order by number), array_agg(1 + coalesce(before, 0) order by number) into v_left, v_from
  from (
    select number, waiting.jobs::int as jobs,
           (sum(dependents.jobs) over (order by number) - coalesce(dependents.jobs, 0))::int as before
    from generate_series(1, cardinality(p_refs) + 1) as number
    left join (select owner, count(*) as jobs from unnest(p_owners, p_blockers) as e(owner, blocker)
               where blocker is not null group by owner) as waiting on owner = number
    left join (select blocker, count(*) as jobs from unnest(p_blockers) as e(blocker)
               where blocker is not null group by blocker) as dependents on blocker = number
  ) as counted;
  v_after := array(select owner::int from unnest(p_owners, p_blockers) as e(owner, blocker)
                   where blocker is not null order by blocker);
  v_free := array(select n from generate_series(1, cardinality(p_refs)) as n where v_left[n] = 0);
  while v_next <= cardinality(v_free) loop
    v_job := v_free[v_next];
    v_next := v_next + 1;
    for n in v_from[v_job] .. v_from[v_job + 1] - 1 loop
      v_left[v_after[n]] := v_left[v_after[n]] - 1;
      if v_left[v_after[n]] = 0 then
        v_free := v_free || v_after[n];
      end if;
    end loop;
  end loop;
  v_job := (select n from generate_series(1, cardinality(p_refs)) as n where v_left[n] > 0 limit 1);
  while v_job is not null loop -- each job that is left has a blocker that is left
    if p_refs[v_job] = any(v_path) then
      perform refuse(format('after: these jobs wait for each other: %s',
        array_to_string(v_path[array_position(v_path, p_refs[v_job]) :] || p_refs[v_job], ', ')));
    end if;
    v_path := v_path || p_refs[v_job];
    v_job := (select blocker from unnest(p_owners, p_blockers) as e(owner, blocker)
              where owner = v_job and v_left[blocker] > 0 limit 1);
  end loop;
end $$;
