-- insert_jobs: the long way of an enqueue, for any jobs, each with its own options. The short way is insert_uniform.

-- When a job is due; null: at once.
create or replace function run_at_of(delay_seconds float8, scheduled_at timestamptz, at timestamptz) returns timestamptz
language sql stable
return case when delay_seconds > 0 then at + make_interval(secs => delay_seconds)
            when scheduled_at > at then scheduled_at end;

-- One row for each job, in the order of the jobs.
create or replace function insert_jobs(
  p_jobs new_job[],
  p_refs text[] default null, -- of a flow: the names by which `after` calls its jobs
  p_chains uuid[] default null, p_indexes int[] default null, p_flows uuid[] default null -- of continuations: see continue.sql
)
returns table (id uuid, status text, scheduled_at timestamptz, deduplicated boolean, outcome text, replaced_id uuid)
language plpgsql
set enable_seqscan = off -- the table of idempotency keys is large
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_some       record := check_jobs(p_jobs);
  v_lanes      int[] := lanes_of(p_jobs, v_some.are_of_one_lane);
  v_stem       text := id_stem(cardinality(p_jobs));
  v_flow       uuid := case when p_refs is not null then numbered_id(v_stem, 0) end;
  v_now        timestamptz;
  v_duplicates bigint[] := '{}';
  v_unwritten  bigint[] := '{}'; -- other jobs stand for these
  v_bound      bound_jobs;
begin
  if v_some.have_time then
    -- The lock comes before the clock: so, while the clock does not step back, nothing is written with a run_at that lies
    -- before its writer's lock, and keep_reachable has nothing to do (see advance_cursors).
    lock table scheduled in row exclusive mode;
    v_now := clock_timestamp();
  end if;
  if v_some.have_key then
    v_duplicates := reserve_keys(p_jobs, v_stem);
  end if;
  if v_some.have_debounce then
    v_now := lock_debounce_keys(p_jobs, v_duplicates, coalesce(p_refs, p_chains::text[]) is null);
    v_bound := bind_jobs(p_jobs, v_duplicates, v_stem, v_now);
    p_jobs := v_bound.jobs;
    v_unwritten := places_of(v_bound.bound_ids);
  end if;

  with written as (
    insert into job (id, lane, max_attempts, scheduled_at, expires_at, idempotency_key, partition_key, fair_key,
                     traceparent, tags, payload, chain, chain_index, flow, waits)
    select numbered_id(v_stem, ordinality), v_lanes[ordinality], coalesce(new.max_attempts, 5::smallint), run_at,
           -- a job that is due after its default expiry would never run
           coalesce(new.expires_at, run_at + interval '720 hours'),
           new.idempotency_key, new.partition_key, new.fair_key, traceparent_of(new.traceparent), nullif(new.tags, '{}'),
           coalesce(new.payload, '{}'),
           coalesce(p_chains[ordinality], case when v_flow is not null or new.after is not null then numbered_id(v_stem, ordinality) end),
           p_indexes[ordinality], coalesce(v_flow, p_flows[ordinality]), case when new.after is not null then true end
    from unnest(p_jobs) with ordinality as new
    cross join lateral (select run_at_of(new.delay_seconds, new.scheduled_at, v_now) as run_at) as due
    where ordinality <> all(v_duplicates || v_unwritten)
    returning id, lane, scheduled_at, coalesce(partition_key, fair_key) as key, waits
  ),
  readied as (
    insert into ready (seq, id, lane)
    select nextval('ready_seq'), id, lane from written where scheduled_at is null and key is null and waits is null
  )
  insert into ledger (lane, enqueued, pending, scheduled, blocked)
  select lane, count(*), nullif(count(*) - count(waits), 0), nullif(count(scheduled_at) filter (where waits is null), 0),
         nullif(count(waits), 0) from written group by lane;
  if v_some.have_after or v_flow is not null or p_flows is not null then
    perform insert_links(p_jobs, p_refs, v_stem, v_duplicates, v_lanes, v_now, v_some.have_after, v_flow, p_flows);
  end if;
  perform insert_rest(numbered_id(v_stem, 1), numbered_id(v_stem, cardinality(p_jobs)), v_some.have_turns,
                      v_some.have_time or v_some.have_expiry, v_some.have_tags);
  if v_some.have_debounce then
    perform supersede(v_bound, v_stem);
  end if;
  return query select * from answers_of(p_jobs, v_stem, v_duplicates, v_bound, v_now);
end $$;

-- What the caller is told, one row for each job: about the job that was written, or about the one that stands for it.
create or replace function answers_of(
  p_jobs new_job[], p_stem text, p_duplicates bigint[], p_bound bound_jobs, p_now timestamptz
)
returns table (id uuid, status text, scheduled_at timestamptz, deduplicated boolean, outcome text, replaced_id uuid)
language plpgsql as $$
#variable_conflict use_column
begin
  return query
    select coalesce(owner.id, numbered_id(p_stem, ordinality)),
           coalesce(owner.status, case when new.after is not null then 'blocked'
                                       when numbered_id(p_stem, ordinality) = any(p_bound.replaced_ids) then 'cancelled'
                                       else 'pending' end),
           coalesce(owner.scheduled_at, run_at_of(new.delay_seconds, new.scheduled_at, p_now), time_of_id(numbered_id(p_stem, 1))),
           ordinality = any(p_duplicates),
           case when ordinality <> all(p_duplicates) then p_bound.outcomes[ordinality]
                when new.debounce is not null or new.throttle is not null then 'kept' end,
           p_bound.replaced_ids[ordinality]
    from unnest(p_jobs) with ordinality as new
    cross join lateral find_owner(case when ordinality = any(p_duplicates) then owner_of_key(new.idempotency_key)
                                       else p_bound.bound_ids[ordinality] end) as owner
    order by ordinality;
end $$;

-- What some of the written jobs need beside their rows in `job` and `ready`.
create or replace function insert_rest(
  p_first uuid, p_last uuid, p_have_turns boolean, p_have_times boolean, p_have_tags boolean
) returns void
language plpgsql as $$
begin
  if p_have_turns then
    perform insert_waiting(p_first, p_last);
  end if;
  if p_have_times then
    perform insert_times(p_first, p_last);
  end if;
  if p_have_tags then
    insert into job_tag (tag, id)
    select distinct tag, job.id from job cross join unnest(job.tags) as tag where job.id between p_first and p_last;
  end if;
end $$;

-- The written jobs that have a key and are due: each waits for its turn (dispatch.sql). Their order is that of the call.
create or replace function insert_waiting(p_first uuid, p_last uuid) returns void
language plpgsql as $$
begin
  insert into ready (seq, id, lane, key)
  select nextval('ready_seq'), id, -lane, key_of_job(queue, partition_key, fair_key)
  from (
    select job.id, lane, queue, partition_key, fair_key
    from job join lane using (lane)
    where job.id between p_first and p_last and scheduled_at is null and waits is null
      and coalesce(partition_key, fair_key) is not null
    order by job.id
  ) as in_order;
end $$;

-- Schedules the written jobs that are due later, and lists the expiry times that do not follow from the id.
create or replace function insert_times(p_first uuid, p_last uuid) returns void
language plpgsql as $$
declare
  v_earliest timestamptz;
begin
  with written as materialized (
    select id, lane, scheduled_at, expires_at, key_of_job(queue, partition_key, fair_key) as key, waits
    from job join lane using (lane)
    where id between p_first and p_last
  ),
  postponed as (
    insert into scheduled (run_at, id, lane, key)
    select scheduled_at, id, case when key is null then lane else -lane end, key from written
    where scheduled_at is not null and waits is null
    returning run_at
  ),
  expiring as (
    insert into expiry (expires_at, id) select expires_at, id from written where expires_at is not null
  )
  select min(run_at) into v_earliest from postponed;
  perform keep_reachable(v_earliest);
end $$;
