-- bring back: jobs that died because a blocker did, once the blocker is alive again. They wait again, under a new number, for all
-- that their `after` says, and everything is judged anew.

-- Blocks jobs that were dead. The caller has removed them from `closed`, and books that.
create or replace function block_again(p_ids uuid[]) returns void
language plpgsql as $$
declare
  v_events end_event[];
begin
  with line as materialized (
    select queue, ends_lane_of(queue) as ends_lane
    from (select distinct queue from job join lane using (lane) where job.id = any(p_ids)) as name
  ),
  waiting as materialized (
    select nextval('wait_number') as wait, job.id, lane.lane, line.ends_lane, job.scheduled_at,
           key_of_job(lane.queue, job.partition_key, job.fair_key) as key, dependency.blockers, dependency.dies
    from job join lane using (lane) join line using (queue) join dependency on dependency.id = job.id
    where job.id = any(p_ids)
  ),
  stored as (
    insert into blocked (wait, id, lane, key, run_at, togo)
    select wait, id, case when key is null then lane else -lane end, key, scheduled_at,
           (select count(distinct blocker) from unnest(blockers) as blocker)
    from waiting
  ),
  edges as (
    insert into edge (blocker, wait, lane, dies)
    select distinct blocker, wait, ends_lane, dies from waiting cross join lateral unnest(blockers) as blocker
  ),
  booked as (
    insert into ledger (lane, blocked) select lane, count(*) from waiting group by lane
  )
  select array_agg(row(ends_lane, wait, -1, null)::end_event) into v_events from waiting;
  perform append_ends(v_events);
end $$;

-- Tells the resolvers that these jobs are alive again.
create or replace function tell_victims(p_ids uuid[]) returns void
language plpgsql as $$
declare
  v_victims record;
  v_events  end_event[];
begin
  for v_victims in
    select distinct lane.queue, culprit from closed join lane using (lane)
    where culprit = any(p_ids) and closed.status = 'dead' and reason = 'blocker'
  loop
    v_events := v_events || row(ends_lane_of(v_victims.queue), 0, -2, v_victims.culprit)::end_event;
  end loop;
  perform append_ends(v_events);
end $$;

-- The resolver's part: of each job that is alive again, some of those that died of it. Events for the rest come again.
create or replace function bring_back(p_queue text, p_events end_event[]) returns end_event[]
language plpgsql as $$
declare
  c_victims  constant int := 200;
  v_event    end_event;
  v_ids      uuid[];
  v_put_back end_event[];
begin
  for v_event in select * from unnest(p_events) where number = -2 loop
    continue when exists (select from closed where id = v_event.id); -- it has ended again
    v_ids := array(
      select id from closed
      where culprit = v_event.id and status = 'dead' and reason = 'blocker'
        and lane = any(array(select lane.lane from lane where queue = p_queue))
      order by id limit c_victims for update skip locked);
    perform revive(v_ids);
    if exists (
      select from closed
      where culprit = v_event.id and status = 'dead' and reason = 'blocker'
        and lane = any(array(select lane.lane from lane where queue = p_queue))) then
      v_put_back := v_put_back || v_event;
    end if;
  end loop;
  return v_put_back;
end $$;
