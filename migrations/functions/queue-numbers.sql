-- The numbers of one queue: its books by priority, its longest wait, and the keys with the most waiting jobs.

-- The keys that have the most jobs among the oldest waiting ones, p_looked of each lane. `looked` is how many these are, over all
-- keys: the share of a key is its part of them. `running` is how many of its jobs are under a lease.
create or replace function top_keys(p_queue text, p_keys int, p_looked int) returns json
language sql stable
set search_path from current
as $$
  with waiting as materialized (
    select oldest.key, oldest.id, line.kind
    from lane as line
    cross join lateral (
      select key, id from ready where ready.lane = -line.lane order by seq limit p_looked
    ) as oldest
    where line.queue = p_queue and line.kind in ('ordered', 'fair')
  ),
  top as (
    select key, kind, count(*) as waiting, (array_agg(id))[1] as id
    from waiting group by key, kind order by waiting desc, key limit p_keys
  ),
  running as (
    select entry.key, count(*) as jobs
    from lease join lane using (lane) cross join lateral unnest(lease.keys) as entry(key)
    where lane.queue = p_queue and deadline > now()
    group by entry.key
  )
  select json_build_object(
    'looked', (select count(*) from waiting),
    'keys', coalesce(json_agg(json_build_object(
      'key', coalesce(job.partition_key, job.fair_key), 'kind', case kind when 'ordered' then 'partition' else 'fair' end,
      'waiting', waiting, 'running', coalesce(running.jobs, 0)) order by waiting desc, key), '[]'))
  from top
  left join running using (key)
  cross join lateral (select partition_key, fair_key from job where job.id = top.id offset 0) as job
$$;

create or replace function queue_numbers(
  p_queue text, p_keys int, p_looked int,
  out priorities json, out oldest_due_seconds float8, out paused_since timestamptz, out keys json, out blocked json, out policy json
)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- the first rows of a lane, without sorting all of them
set jit = off
as $$
  select
    (select coalesce(json_agg(by_priority order by priority), '[]')
     from (
       select priority, sum(pending) as pending, sum(scheduled) as scheduled, sum(leased) as leased, sum(blocked) as blocked,
              sum(completed) as completed, sum(dead) as dead
       from books where queue = p_queue group by priority
     ) as by_priority),
    (select extract(epoch from now() - min(since)) from waiting_since() join lane using (lane) where queue = p_queue),
    (select since from pause where kind = 'queue' and name = p_queue),
    top_keys(p_queue, p_keys, p_looked),
    (select entry from json_array_elements(blocked_queues()) as entry where entry ->> 'queue' = p_queue),
    (select json_build_object('on_dead', case when blocks then 'block' else 'pass' end, 'concurrency', concurrency,
                              'seconds_apart', seconds_apart)
     from key_policy where queue = p_queue)
$$;
