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
  c_tries constant int := 20;
  v_cursors    cursors%rowtype; -- an old one is as good: it stands further to the left
  v_tids       tid[];
  v_ids        uuid[];
  v_is_probe   boolean;
  v_more       boolean;
  v_generation bigint;
  v_sorted     uuid[];
begin
  -- Cursors are moved by those who make them lag, once in about 400 claimed jobs. It comes first: an advance does
  -- nothing in a transaction that has written.
  select * into v_cursors from cursors order by id desc limit 1;
  if p_limit * (pg_sequence_last_value('lease_generation') - coalesce(v_cursors.generation, 0)) >= 400 then
    perform advance_cursors();
  end if;
  if random() < p_limit / 5000.0 then
    perform fold_ledger(20000);
  end if;
  perform promote_due(greatest(2 * p_limit, 100), v_cursors.scheduled_low);

  for n in 1 .. c_tries loop
    select tids, ids, is_probe, more into v_tids, v_ids, v_is_probe, v_more
    from choose_jobs(p_queue, p_types, p_limit, p_limits, v_cursors.lows);
    exit when v_ids = '{}';
    v_generation := nextval('lease_generation');
    v_sorted := array(select unnest(v_ids) order by 1);
    return query
      with found as materialized (
        select picked.tid, picked.position, job.id, job.max_attempts, job.scheduled_at,
               job.payload, job.partition_key, job.traceparent, job.tags,
               expiry_of(job.id, job.expires_at) <= now() as is_expired,
               sum(case when pg_column_compression(job.payload) is null then pg_column_size(job.payload)
                        else octet_length(job.payload::text) end) over (order by picked.position) as bytes
        from unnest(v_tids, v_ids) with ordinality as picked(tid, id, position)
        join job on job.id = picked.id
          and job.id = any(v_ids) and job.id >= v_sorted[1] and job.id <= v_sorted[cardinality(v_sorted)]
      ),
      kept as materialized (
        select * from found
        where position = 1 or bytes <= p_max_bytes
      ),
      removed as (
        delete from ready where ctid = any(array(select tid from kept)) returning id, lane, attempt, strikes
      ),
      claimed as materialized (
        select kept.*, removed.lane, removed.attempt, removed.strikes from kept join removed using (id)
      ),
      named as materialized ( -- once for each lane, not for each job
        select lane, type, priority,
               clock_timestamp() + make_interval(secs => coalesce((p_leases ->> type)::float8, p_lease_seconds)) as deadline
        from lane where lane = any(array(select distinct lane from claimed))
      ),
      leased as (
        insert into lease (generation, deadline, started_at, lane, worker, ids, attempts, strikes, delayed)
        select v_generation, min(deadline), now(), lane, p_worker,
               array_agg(id order by id),
               case when max(attempt) > 0 then array_agg((attempt + 1)::smallint order by id) end,
               case when max(strikes) > 0 then array_agg(strikes order by id) end,
               case when max(scheduled_at) is not null then true end
        from claimed join named using (lane)
        where not is_expired
        group by lane
      ),
      buried as (
        insert into closed (id, status, reason, closed_at, lane, attempt, strikes)
        select id, 'dead', 'expired', now(), lane, attempt, strikes from claimed where is_expired
      ),
      booked as (
        insert into ledger (lane, pending, leased, dead, expired)
        select lane, -count(*), nullif(count(*) filter (where not is_expired), 0),
               nullif(count(*) filter (where is_expired), 0), nullif(count(*) filter (where is_expired), 0)
        from claimed group by lane
      )
      select claimed.id, named.type, claimed.payload, (claimed.attempt + 1)::smallint, claimed.max_attempts,
             claimed.strikes, v_generation, named.deadline, named.priority, time_of_id(claimed.id),
             claimed.partition_key, claimed.traceparent, claimed.tags,
             case when claimed.attempt > 0 then errors_of(claimed.id) else '[]' end,
             v_is_probe,
             v_more or (select count(*) from kept) < cardinality(v_ids)
      from claimed join named using (lane)
      where not is_expired
      order by position;
    exit when found; -- else all of them had expired: there may be good ones behind them
  end loop;
  if p_limits is not null then
    perform count_claimed(p_limits, v_generation);
  end if;
end $$;

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
