-- The registry of live workers. The hash ring (src/core/policy/hash-ring.ts) shares a queue's partition keys between them.
-- The registry decides who should take a key and never who may: a worker that is missing here, or has just died, costs
-- time and breaks no order.

-- A worker is gone this long after its last heartbeat.
create or replace function worker_lifetime() returns interval
language sql immutable
return interval '30 s';

-- The heartbeat of a worker. Answers when the worker will be gone; null: there was no room for a drain, which then works
-- without a place on the ring.
--
-- One heartbeat of a worker runs at a time, by its lock, so a worker has one row. Every claim of a registered drain comes
-- by here, so most heartbeats only read.
create or replace function register_worker(p_worker text, p_queues text[], p_kind text) returns timestamptz
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  c_write_after constant interval := case p_kind when 'drain' then interval '5 s' else interval '1 s' end;
  v_now         timestamptz;
  v_before      worker%rowtype;
begin
  perform refuse_bad_worker(p_worker, p_queues);
  perform lock_worker(p_worker);
  v_now := clock_timestamp(); -- after the lock, so that a later heartbeat has a later time
  select * into v_before
  from worker
  where worker_id = p_worker and seen_at > v_now - worker_lifetime()
  order by seen_at desc
  limit 1;
  if v_before.queues = p_queues and v_before.kind = p_kind
     and v_before.seen_at between v_now - c_write_after and v_now then
    return v_before.seen_at + worker_lifetime();
  end if;
  if v_before.worker_id is null and not has_room_for_worker() then
    if p_kind = 'drain' then
      return null;
    end if;
    raise exception using errcode = 'SL429', message = 'there are too many live workers: at most 1,000 can be registered';
  end if;
  -- All of them: a row that lies ahead of the clock was written before the clock stepped back.
  delete from worker where worker_id = p_worker and seen_at > v_now - worker_lifetime();
  insert into worker (worker_id, kind, queues, started_at, seen_at)
  values (p_worker, p_kind, p_queues, least(v_before.started_at, v_now), v_now);
  return v_now + worker_lifetime();
end $$;

-- Until the end of the transaction.
create or replace function lock_worker(p_worker text) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(format('sluice.worker.%s.%s', current_schema(), p_worker), 0));
end $$;

create or replace function refuse_bad_worker(p_worker text, p_queues text[]) returns void
language plpgsql as $$
declare
  c_most_queues constant int := 100;
  v_queue       text;
begin
  if p_worker is null or length(p_worker) not between 1 and 255 then
    perform refuse('worker_id: must have 1 to 255 characters');
  elsif p_queues is null or array_ndims(p_queues) is distinct from 1 or cardinality(p_queues) > c_most_queues then
    perform refuse(format('queues: must be a flat list of 1 to %s names', c_most_queues));
  end if;
  foreach v_queue in array p_queues loop
    perform refuse_bad_name('queues', v_queue);
  end loop;
end $$;

-- The ring is computed from all live workers, so their number is bounded. Workers that others register at the same moment
-- are not counted, so the bound may be exceeded by as many.
create or replace function has_room_for_worker() returns boolean
language plpgsql as $$
declare
  c_most_live constant int := 1000;
  v_now       timestamptz := clock_timestamp();
begin
  return (select count(*) from worker where seen_at > v_now - worker_lifetime()) < c_most_live;
end $$;

-- The live workers of a queue; null: of all queues. A row that lies ahead of the clock is left out: the clock has stepped
-- back, and the worker's next heartbeat, if there is one, writes it anew.
create or replace function live_workers(p_queue text default null)
returns table (worker_id text, kind text, queues text[], started_at timestamptz, seen_at timestamptz, expires_at timestamptz)
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  return query
    select worker.worker_id, worker.kind, worker.queues, worker.started_at, worker.seen_at, worker.seen_at + worker_lifetime()
    from worker
    where worker.seen_at > v_now - worker_lifetime()
      and worker.seen_at <= v_now + interval '1 s'
      and (p_queue is null or p_queue = any(worker.queues))
    order by worker.worker_id;
end $$;

-- The heartbeat of a puller. Answers with all live workers that share a queue with it, and with itself.
create or replace function register_puller(p_worker text, p_queues text[])
returns table (worker_id text, kind text, queues text[], started_at timestamptz, seen_at timestamptz, expires_at timestamptz)
language plpgsql
security definer
set search_path from current
as $$
begin
  perform register_worker(p_worker, p_queues, 'puller');
  return query select * from live_workers() as live where live.queues && p_queues;
end $$;

-- The heartbeat of a drain, in its claim. Answers with the live workers of the queue; null: the drain is not on the ring. It
-- joins when it has taken jobs with a partition key and will claim again. A drain that has a share of the buckets stays.
create or replace function join_ring(p_batch claim_batch, p_worker text) returns text[]
language plpgsql as $$
begin
  if p_worker is null or p_batch.buckets is null
     and not (p_batch.has_more and exists (select from unnest(p_batch.taken) where kind = 'ordered')) then
    return null;
  end if;
  perform register_worker(p_worker, array[p_batch.queue], 'drain');
  return array(select worker_id from live_workers(p_batch.queue));
end $$;

-- The worker leaves at once. Answers false if it was gone already. A heartbeat that has begun comes first, by the lock.
create or replace function remove_worker(p_worker text) returns boolean
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz;
begin
  perform lock_worker(p_worker);
  v_now := clock_timestamp();
  delete from worker where worker_id = p_worker and seen_at > v_now - worker_lifetime();
  return found;
end $$;

-- Removes the rows of workers that are long gone; a reap round calls it (prune). It starts an hour before the last round:
-- that round has removed what is older. If it started at the oldest row, it would read the dead rows of all heartbeats
-- while the database is pinned.
create or replace function prune_workers(p_limit int) returns int
language plpgsql as $$
declare
  v_now    timestamptz := clock_timestamp();
  v_from   timestamptz := (select ended_at - interval '1 hour' from round where kind = 'reap' order by id desc limit 1);
  v_pruned int;
begin
  delete from worker
  where ctid = any(
    array(select ctid from worker
          where seen_at >= coalesce(v_from, '-infinity') and seen_at < v_now - interval '1 minute'
          order by seen_at limit p_limit)
    || array(select ctid from worker where seen_at > v_now + interval '1 minute' order by seen_at limit p_limit));
  get diagnostics v_pruned = row_count;
  return v_pruned;
end $$;
