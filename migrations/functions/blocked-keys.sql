-- blocked_keys: the partition keys of a queue that stand still because their first job is dead, the longest blocked first, a
-- page at a time. p_after_micros and p_after_id are the time and the job of the last one of the page before.
--
-- A page reads at most p_limit rows of each lane of the queue, and p_counted waiting jobs of each key that it shows.
create or replace function blocked_keys(
  p_queue text, p_after_micros bigint, p_after_id uuid, p_limit int,
  p_counted int default 1000 -- waiting jobs of a key are counted up to here
)
returns table (
  partition_key text, bucket int, since timestamptz, since_micros bigint, job_id uuid, type text, dead_reason text,
  error text, waiting int, waiting_is_more boolean
)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- the first rows of a lane or a key, without sorting all of them
set jit = off
as $$
  with page as materialized (
    select blocking.*
    from lane as line
    cross join lateral (
      select closed.id, closed.key, closed.place, closed.closed_at, closed.reason, line.type
      from closed
      where closed.lane = line.lane and closed.key is not null and closed.status = 'dead'
        and (closed.closed_at, closed.id)
            > (coalesce('epoch'::timestamptz + p_after_micros * interval '1 microsecond', '-infinity'),
               coalesce(p_after_id, '00000000-0000-0000-0000-000000000000'))
      order by closed.closed_at, closed.id
      limit p_limit
    ) as blocking
    where line.queue = p_queue and line.kind = 'ordered'
    order by blocking.closed_at, blocking.id
    limit p_limit
  )
  select job.partition_key, bucket_of(page.key), page.closed_at, (extract(epoch from page.closed_at) * 1000000)::bigint,
         page.id, page.type, page.reason, latest.message, least(behind.jobs, p_counted), behind.jobs > p_counted
  from page
  cross join lateral (select partition_key from job where job.id = page.id offset 0) as job
  left join lateral (
    select message from failed_attempt where failed_attempt.id = page.id order by failed_at desc limit 1
  ) as latest on true
  cross join lateral (
    select count(*)::int as jobs
    from (
      select from ready
      where ready.key = page.key and ready.seq > waits_after(p_queue, page.key, page.place) and ready.lane < 0
      order by ready.seq
      limit p_counted + 1
    ) as counted
  ) as behind
  order by page.closed_at, page.id
$$;

-- For snapshot(), which calls it with its own planner settings: how many partition keys of each queue are blocked, the
-- longest of them, and its dead job. One entry for each queue that ever had a partition key. At most 10,000 are counted in
-- each lane.
create or replace function blocked_queues() returns json
language sql stable
set search_path from current
as $$
  select coalesce(json_agg(of_queue), '[]')
  from (
    select line.queue, sum(counted.keys)::int as keys, min(longest.closed_at) as since,
           (array_agg(longest.id order by longest.closed_at))[1] as job_id
    from lane as line
    left join lateral (
      select id, closed_at from closed
      where closed.lane = line.lane and closed.key is not null and closed.status = 'dead'
      order by closed_at, id limit 1
    ) as longest on true
    cross join lateral (
      select count(*) as keys
      from (
        select from closed
        where closed.lane = line.lane and closed.key is not null and closed.status = 'dead' -- as closed_blocking says
        limit 10000
      ) as blocking
    ) as counted
    where line.kind = 'ordered'
    group by line.queue
    order by line.queue
  ) as of_queue
$$;
