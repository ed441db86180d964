-- claim: a batch of due jobs, best priority first and then oldest, under a lease. One call, one round trip.
--
-- What is claimed is deleted from `ready` and packed into one lease for each lane. Row locks that are skipped keep
-- two claimers apart (choose.sql). Pausing, limits and breakers choose lanes: a lane that is not chosen costs nothing.

create or replace function claim(
  p_queue         text,
  p_types         text[], -- what the caller can run
  p_limit         int,
  p_lease_seconds float8,
  p_worker        text default null,
  p_max_bytes     bigint default 4194304, -- of payloads; the first job is claimed whatever its size
  p_limits        jsonb default null, -- { type: { concurrency?, rate?, seconds? } } of the limited types
  p_leases        jsonb default null -- { type: seconds } where a type's lease is another one
) returns table (
  id uuid, type text, payload jsonb, attempt smallint, max_attempts smallint, strikes smallint,
  lease_generation bigint, lease_expires_at timestamptz, priority smallint, created_at timestamptz,
  partition_key text, traceparent text, tags text[], errors jsonb, is_probe boolean, has_more boolean
)
language plpgsql
set search_path from current
set enable_seqscan = off -- whatever the statistics say, no queue is ever read from end to end,
set enable_bitmapscan = off -- nor a lane, to be sorted
set plan_cache_mode = force_generic_plan -- planning takes longer than the work
as $$
#variable_conflict use_column
declare
  c_tries constant int := 40;
  v_cursors    cursors%rowtype; -- an old one is as good: it stands further to the left
  v_jobs       picked_job[];
  v_expired    picked_job[];
  v_ids        uuid[]; -- of them, sorted
  v_is_probe   boolean;
  v_more       boolean;
  v_generation bigint;
  v_now        timestamptz;
begin
  -- Cursors are moved by those who make them lag, once in about 400 claimed jobs. It comes first: an advance does
  -- nothing in a transaction that has written.
  select * into v_cursors from cursors order by id desc limit 1;
  if p_limit * (pg_sequence_last_value('lease_generation') - coalesce(v_cursors.generation, 0)) >= 400 then
    perform advance_cursors();
    if v_cursors.id % 12 = 0 then -- once in about 5,000 jobs
      perform fold_ledger(20000);
    end if;
  end if;
  perform promote_due(greatest(2 * p_limit, 100), v_cursors.scheduled_low);

  for n in 1 .. c_tries loop
    if v_jobs is null then
      select jobs, is_probe, more into v_jobs, v_is_probe, v_more
      from choose_jobs(p_queue, p_types, p_limit, p_limits, v_cursors.lows);
      if v_jobs = '{}' then
        return;
      end if;
    end if;
    v_ids := array(select id from unnest(v_jobs) order by id);
    v_generation := nextval('lease_generation');
    v_now := clock_timestamp();
    return query
      with found as materialized (select * from read_jobs(v_jobs, v_ids)),
      judged as materialized (
        select (count(*) = 1 or sum(bytes) <= p_max_bytes) and not bool_or(is_expired) as is_good from found
      ),
      booked as (
        insert into ledger (lane, pending, leased, waiting_seconds)
        select lane, -count(*), count(*),
               array_agg(date_part('epoch', v_now - due_at)::real) filter (where attempt = 0)
        from found
        where (select is_good from judged)
        group by lane
      )
      select found.id, lane.type, found.payload, (found.attempt + 1)::smallint, found.max_attempts, found.strikes,
             v_generation, deadline_of(v_now, lane.type, p_lease_seconds, p_leases), lane.priority, found.created_at,
             found.partition_key, found.traceparent, found.tags,
             case when found.attempt > 0 then errors_of(found.id) else '[]' end,
             v_is_probe, v_more
      from found join lane using (lane)
      where (select is_good from judged)
      order by found.place;
    exit when found;
    -- Rarely: what has expired is buried, and what is too large for one answer stays where it is. Then again with the
    -- others; or if there are none, with those behind them.
    select array_agg(row(tid, id, lane, attempt, strikes)::picked_job order by place) filter (where not is_expired),
           array_agg(row(tid, id, lane, attempt, strikes)::picked_job) filter (where is_expired),
           v_more or count(*) < cardinality(v_jobs)
    into v_jobs, v_expired, v_more
    from (
      select *, place = 1 or sum(bytes) over (order by place) <= p_max_bytes as fits from read_jobs(v_jobs, v_ids)
    ) as found
    where fits;
    perform bury_expired(v_expired);
    if n = c_tries then
      return;
    end if;
  end loop;

  delete from ready where ctid = any(array(select tid from unnest(v_jobs)));
  insert into lease (generation, deadline, started_at, lane, worker, ids, attempts, strikes)
  select v_generation, deadline_of(v_now, lane.type, p_lease_seconds, p_leases), now(), lane, p_worker,
         claimed.ids, claimed.attempts, claimed.strikes
  from (
    select lane, array_agg(id order by id) as ids,
           case when max(attempt) > 0 then array_agg((attempt + 1)::smallint order by id) end as attempts,
           case when max(strikes) > 0 then array_agg(strikes order by id) end as strikes
    from unnest(v_jobs)
    group by lane
  ) as claimed join lane using (lane);
  if p_limits is not null then
    perform count_claimed(p_limits, v_generation);
  end if;
end $$;

-- What was chosen, with what its handler needs of it. Inlined where it is called.
create or replace function read_jobs(p_jobs picked_job[], p_sorted_ids uuid[])
returns table (
  place bigint, tid tid, id uuid, lane int, attempt smallint, strikes smallint, max_attempts smallint,
  created_at timestamptz, due_at timestamptz, payload jsonb, partition_key text, traceparent text, tags text[],
  is_expired boolean, bytes int
)
language sql stable as $$
  select picked.place, picked.tid, picked.id, picked.lane, picked.attempt, picked.strikes, job.max_attempts,
         time_of_id(job.id), coalesce(job.scheduled_at, time_of_id(job.id)),
         job.payload, job.partition_key, job.traceparent, job.tags,
         expiry_of(job.id, job.expires_at) <= now(),
         payload_bytes(job.payload)
  from unnest(p_jobs) with ordinality as picked(tid, id, lane, attempt, strikes, place)
  join job on job.id = picked.id
    and job.id = any(p_sorted_ids) and job.id >= p_sorted_ids[1] and job.id <= p_sorted_ids[cardinality(p_sorted_ids)]
$$;

create or replace function deadline_of(p_now timestamptz, p_type text, p_seconds float8, p_of_types jsonb)
returns timestamptz
language sql stable
return p_now + make_interval(secs => coalesce((p_of_types ->> p_type)::float8, p_seconds));

create or replace function bury_expired(p_jobs picked_job[]) returns void
language sql as $$
  delete from ready where ctid = any(array(select tid from unnest(p_jobs)));
  insert into closed (id, status, reason, closed_at, lane, attempt, strikes)
  select id, 'dead', 'expired', now(), lane, attempt, strikes from unnest(p_jobs);
  insert into ledger (lane, pending, dead, expired)
  select lane, -count(*), count(*), count(*) from unnest(p_jobs) group by lane;
$$;

-- What has become due moves from `scheduled` to the end of its lane, in bounded number, the longest due first.
create or replace function promote_due(p_limit int, p_low timestamptz) returns void
language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp(); -- a value: the clock itself is no bound to stop at
begin
  with due as materialized (
    select ctid as tid
    from scheduled
    where run_at >= coalesce(p_low, '-infinity') and run_at <= v_now
    order by run_at
    limit p_limit
    for update skip locked
  ),
  removed as (
    delete from scheduled where ctid = any(array(select tid from due)) returning run_at, id, lane, attempt, strikes
  )
  insert into ready (seq, id, lane, attempt, strikes)
  select nextval('ready_seq'), id, lane, attempt, strikes
  from (select * from removed order by run_at) as in_order;
end $$;
