-- Rounds: records what each one did, and tells a new one how much there is to do.

create or replace function record_round(p_kind text, p_queue text, p_ms float8, p_report jsonb) returns bigint
language sql
security definer
set search_path from current
as $$
  insert into round (kind, queue, started_at, ended_at, claimed, completed, failed, released, lost, claim_ms,
                     reason, message, steps)
  select p_kind, p_queue, ended_at - make_interval(secs => greatest(p_ms, 0) / 1000), ended_at,
         coalesce(report.claimed, 0), coalesce(report.completed, 0), coalesce(report.failed, 0),
         coalesce(report.released, 0), coalesce(report.lost, 0), report.claim_ms, coalesce(report.end, 'done'),
         left(report.message, 1000), report.steps
  from jsonb_to_record(p_report)
    as report(claimed int, completed int, failed int, released int, lost int, claim_ms float8, "end" text,
              message text, steps jsonb),
  clock_timestamp() as ended_at
  returning id
$$;

-- Counts the due jobs of these types in each queue, up to p_cap for each lane. That is enough to decide how many drains
-- to start. Paused lanes count nothing, and neither do types whose open breaker has just let a probe through. Of jobs with keys
-- it counts those that the dispatcher has not read yet, those that have a turn, the newest of fair keys, and one for turns
-- that came back. Jobs that wait behind others of their partition key need no drain.
create or replace function backlog(p_types text[], p_cap int) returns table (queue text, due bigint)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  with promoted_soon as (
    select lane, count(*) as jobs
    from (select abs(lane) as lane from scheduled
          -- If the clock has stepped back, a cursor may lie ahead of it. Then all rows are read.
          where run_at >= coalesce((select case when at <= clock_timestamp() then scheduled_cursor end
                                    from cursors order by id desc limit 1), '-infinity')
            and run_at <= now()
          order by run_at limit p_cap) as due
    group by lane
  )
  select lanes.queue, sum(waiting.jobs + keyed.jobs + coalesce(promoted_soon.jobs, 0))::bigint
  from (
    select lane, queue, kind, coalesce(low, 0) as low,
           case when kind = 'ordered' then given_up_to(lane.queue, lane.lane) end as read_seq,
           case when kind in ('ordered', 'fair') then
             (select lane from lane as returns where returns.queue = lane.queue and returns.kind = 'returns' limit 1)
           end as returns
    from lane
    left join unnest((select cursor_seqs from cursors order by id desc limit 1)) with ordinality as cursor(low, lane) using (lane)
    where (type = any(p_types) or kind = 'ends')
      and type <> all(array(select name from pause where pause.kind = 'type'))
      and queue <> all(array(select name from pause where pause.kind = 'queue'))
      and type <> all(array(
        select type from breaker where closed_at is null and not is_probe_due(probed_at, clock_timestamp())))
    offset 0
  ) as lanes
  cross join lateral (
    select count(*) as jobs
    from (select from ready where ready.lane = lanes.lane and seq >= lanes.low order by seq limit p_cap) as ahead
  ) as waiting
  cross join lateral (
    select count(*) as jobs
    from (
      (select from ready
       where ready.lane = -lanes.lane and lanes.kind = 'ordered' and seq > coalesce(lanes.read_seq, 0)
       order by seq limit p_cap)
      union all
      (select from ready where ready.lane = -lanes.lane and lanes.kind = 'fair' order by seq desc limit p_cap)
      union all
      (select from ready where ready.lane = lanes.returns order by seq desc limit 1)
    ) as ahead
    where lanes.kind <> 'plain'
  ) as keyed
  left join promoted_soon using (lane)
  group by lanes.queue
  having sum(waiting.jobs + keyed.jobs + coalesce(promoted_soon.jobs, 0)) > 0
$$;

-- Rounds, newest first, of one kind or of all. p_before: the last id of the page before.
create or replace function list_rounds(p_kind text, p_before bigint, p_limit int) returns setof round
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
begin
  if p_kind is null then
    return query select * from round where id < coalesce(p_before, 9223372036854775807) order by id desc limit p_limit;
  else
    return query
      select * from round where kind = p_kind and id < coalesce(p_before, 9223372036854775807) order by id desc limit p_limit;
  end if;
end $$;
