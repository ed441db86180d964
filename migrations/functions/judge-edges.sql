-- judge edges: has a blocker ended, and how? The resolver asks it for edges from jobs that were there before their dependents, and
-- after a bad end. It waits for nobody, and marks no job.
--
-- Whoever takes a job from where it is locks its row first, and looks for edges in a later statement. So if nobody has locked the row
-- yet, whoever does so from now on finds this edge, which was committed before: the blocker is open. A row without a mark (xmax) is
-- not locked. One with a mark is locked here. If another has the lock, nobody knows yet: the event comes again.
--
-- The settles of a queue's leases look for edges if the claim has found a lane of ends in its queue, after it locked the jobs
-- (write_leases). So a blocker's queue must have such a lane, and others must see it. If not, it is made here, and the event comes
-- again. A lease may be older than the lane, so the lease of a blocker is locked and told. For the same reason an edge of this
-- transaction (bring-back.sql) is judged by a later one.

-- Of the events with the numbers 0 and -1: what to count, whom to bury, and what comes again.
create or replace function judge_edges(
  p_events end_event[],
  out counts end_event[], out dead_waits bigint[], out culprits uuid[], out lanes int[], out put_back end_event[],
  out has_locked boolean -- rows of many blockers are locked
)
language plpgsql as $$
declare
  c_edges  constant int := 500; -- of one wait in one event: their rows stay locked until this claim has committed
  c_many   constant int := 50;
  v_own    xid := pg_current_xact_id()::xid;
  v_edges  end_event[]; -- the number is 1 if the end of the blocker kills
  v_new    end_event[];
  v_pages  end_event[];
  v_states record;
begin
  select array_agg(row(event.lane, event.wait, edge.dies::int, edge.blocker)::end_event) filter (where edge.xmin <> v_own),
         array_agg(row(event.lane, event.wait, 0, edge.blocker)::end_event) filter (where edge.xmin = v_own)
  into v_edges, v_new
  from unnest(p_events) as event join edge on edge.wait = event.wait and edge.blocker = event.id
  where event.number = 0;
  -- All edges of a wait, a page at a time. The youngest blockers first: claims take the oldest.
  with page as materialized (
    select event.lane, event.wait, page.blocker, page.dies, page.is_new,
           row_number() over (partition by event.wait order by page.blocker desc) as n
    from unnest(p_events) as event
    cross join lateral (
      select blocker, dies, xmin = v_own as is_new from edge
      where edge.wait = event.wait and blocker < coalesce(event.id, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      order by blocker desc limit c_edges
    ) as page
    where event.number = -1
  )
  select v_edges || array_agg(row(lane, wait, dies::int, blocker)::end_event) filter (where not is_new),
         v_new || array_agg(row(lane, wait, 0, blocker)::end_event) filter (where is_new),
         array_agg(row(lane, wait, -1, blocker)::end_event) filter (where n = c_edges)
  into v_edges, v_new, v_pages from page;
  perform append_ends(v_pages);
  put_back := v_new;
  if v_edges is null then
    return;
  end if;

  v_states := states_of_blockers(array(select distinct id from unnest(v_edges)));
  has_locked := v_states.locked >= c_many;
  with judged as materialized (
    select edge.lane, edge.wait, edge.id as blocker, edge.number = 1 as dies, state.state, state.current
    from unnest(v_edges) as edge
    left join unnest(v_states.blockers, v_states.states, v_states.currents) as state(blocker, state, current)
      on state.blocker = edge.id
  ),
  cut as (
    delete from edge using judged
    where edge.wait = judged.wait and edge.blocker = judged.blocker
      and (judged.state = 'completed' or judged.state <> 'open' and not judged.dies)
    returning judged.lane, edge.wait
  )
  select (select array_agg(row(lane, wait, jobs, null)::end_event)
          from (select lane, wait, count(*) as jobs from cut group by lane, wait) as counted),
         array_agg(wait) filter (where is_bad), array_agg(current) filter (where is_bad),
         array_agg(lane) filter (where is_bad),
         v_new || array_agg(row(lane, wait, 0, blocker)::end_event) filter (where state is null)
  into counts, dead_waits, culprits, lanes, put_back
  from (select *, state not in ('open', 'completed') and dies as is_bad from judged) as judged;
end $$;

-- The state of each blocker: open, or how it ended; null: somebody moves it just now. `currents` are the last jobs of the chains.
create or replace function states_of_blockers(
  p_blockers uuid[], out blockers uuid[], out states text[], out currents uuid[], out locked int -- how many are locked
)
language plpgsql as $$
declare
  v_open     uuid[];
  v_watched  int[]; -- the lanes of queues that have a lane of ends
  v_waiting  record;
  v_leased   record;
  v_rest     uuid[]; -- not open, or held by others
  v_closed   uuid[];
  v_statuses text[];
  v_done     uuid[];
begin
  blockers := p_blockers;
  currents := last_jobs(p_blockers);
  v_watched := array(
    select lane from lane
    where queue in (select queue from lane where kind = 'ends' and xmin <> pg_current_xact_id()::xid)); -- others see it
  v_waiting := waiting_blockers(currents, v_watched);
  v_open := v_waiting.unmarked || v_waiting.locked;
  v_leased := lock_leases_of(array(select unnest(currents) except select unnest(v_open)), v_watched);
  v_open := v_open || v_leased.ids;
  locked := cardinality(v_open) - coalesce(cardinality(v_waiting.unmarked), 0);
  perform ends_lane_of(queue)
  from (select distinct queue from lane where lane = any(v_waiting.unwatched || v_leased.unwatched)) as new;

  v_rest := array(select unnest(currents) except select unnest(v_open));
  -- The lock of a dead one keeps a replay waiting until the jobs that it kills are dead, so that the replay finds them.
  select array_agg(id), array_agg(status) into v_closed, v_statuses
  from (select id, status from closed where id = any(v_rest) for share skip locked) as locked;
  v_done := done_or_pruned(v_rest);
  select array_agg(case when entry.now_current <> entry.current then null
                        when entry.current in (select unnest(v_open)) then 'open'
                        when is_signal(entry.blocker) then state_of_signal(entry.blocker)
                        else coalesce(ended.status, case when entry.current in (select unnest(v_done)) then 'completed' end) end
                   order by number)
  into states
  from unnest(p_blockers, currents, last_jobs(p_blockers)) with ordinality as entry(blocker, current, now_current, number)
  left join unnest(v_closed, v_statuses) as ended(id, status) on ended.id = entry.current;
end $$;

-- Those of these jobs that wait in watched lanes: the ones whose rows bear no mark, and the others as far as they can be locked.
create or replace function waiting_blockers(
  p_ids uuid[], p_watched int[], out unmarked uuid[], out locked uuid[], out unwatched int[]
)
language plpgsql as $$
declare
  v_marked uuid[];
begin
  with waiting as materialized (
    select id, abs(lane) as lane, xmax = 0 as is_unmarked from ready where id = any(p_ids)
    union all select id, abs(lane), xmax = 0 from scheduled where id = any(p_ids)
    union all select id, abs(lane), xmax = 0 from blocked where id = any(p_ids)
  )
  select array_agg(id) filter (where is_watched and is_unmarked), array_agg(id) filter (where is_watched and not is_unmarked),
         array_agg(distinct lane) filter (where not is_watched)
  into unmarked, v_marked, unwatched
  from (select *, lane in (select unnest(p_watched)) as is_watched from waiting offset 0) as looked_up;
  locked := array(select id from ready where id = any(v_marked) for update skip locked)
    || array(select id from scheduled where id = any(v_marked) for update skip locked)
    || array(select id from blocked where id = any(v_marked) for update skip locked);
end $$;

-- Those of these jobs that are leased from watched lanes: their leases are locked, and their settles will look for edges.
create or replace function lock_leases_of(p_ids uuid[], p_watched int[], out ids uuid[], out unwatched int[])
language plpgsql as $$
declare
  v_leases tid[];
begin
  if p_ids = '{}' then
    return;
  end if;
  -- `in (select …)` in a list of results compares by a hash: a join would compare each id of each lease with each.
  with locked as materialized (
    select ctid as tid, lane, lease.ids from lease
    where deadline > now() - interval '1 hour' -- a range of the index, not the whole table
      and (select bool_or(id in (select unnest(p_ids))) from unnest(lease.ids) as id)
    for update skip locked
  )
  select array_agg(distinct tid) filter (where is_watched), array_agg(id) filter (where is_watched),
         array_agg(distinct lane) filter (where not is_watched)
  into v_leases, ids, unwatched
  from (
    select tid, lane, id, id in (select unnest(p_ids)) as is_wanted, lane in (select unnest(p_watched)) as is_watched
    from locked cross join lateral unnest(locked.ids) as id offset 0
  ) as held
  where is_wanted;
  update lease set linked = coalesce(linked, false) where ctid = any(v_leases);
end $$;

-- The last job of each chain, in the order of the chains.
create or replace function last_jobs(p_chains uuid[]) returns uuid[]
language plpgsql stable as $$
begin
  if not exists (select from chain_job where chain = any(p_chains)) then
    return p_chains; -- most chains have one job
  end if;
  return array(
    select coalesce((select id from chain_job where chain_job.chain = entry.chain order by index desc limit 1), entry.chain)
    from unnest(p_chains) with ordinality as entry(chain, number) order by number);
end $$;

-- Those of these jobs that have completed. One that is not there was pruned, so it counts as completed. Jobs of one bucket of ids are
-- looked for together: a look for one of them may read the whole bucket.
create or replace function done_or_pruned(p_ids uuid[]) returns uuid[]
language plpgsql as $$
declare
  v_done uuid[];
begin
  if p_ids = '{}' then
    return p_ids;
  end if;
  v_done := array(
    select wanted.id
    from (select (array_agg(id order by id))[1] as low, (array_agg(id order by id desc))[1] as high
          from unnest(p_ids) as id group by left(id::text, 8)) as bucket
    cross join lateral (
      select ids from done where hi_id >= bucket.low and hi_id <= end_of_bucket(bucket.high) and lo_id <= bucket.high offset 0
    ) as batch
    cross join lateral unnest(batch.ids) as held(id)
    join unnest(p_ids) as wanted(id) using (id));
  return v_done || array(
    select rest.id
    from (select unnest(p_ids) except select unnest(v_done)) as rest(id)
    where not exists (select from job where job.id = rest.id));
end $$;
