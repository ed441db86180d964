-- next_due: in how many milliseconds the next thing is due. The clock (docs/clock.md) is told this, so that somebody comes back then.
--   due_ms     for a drain: a scheduled job, a retry, a time-out of a wait, the next probe of an open breaker, the next start
--              of a type whose rate is used up (p_limits are as in a claim), or the next step of a run over dead letters
--   upkeep_ms  for the reaper and the notices: a lease that runs out, a job that expires, slots of a schedule that must be planned, a
--              notice to send again. Only if asked for.
-- Null: there is none. A lease or an expiry whose time has passed is 0.
--
-- What is due by now is left out of due_ms, because backlog() counts it. Both use now(). So if one statement calls both, a
-- job that becomes due is in one of the two answers, also while somebody moves it from `scheduled` to `ready`.
--
-- Each look is one step into an index, and takes no lock. Dead rows of `scheduled` lie before now, but for jobs that were
-- cancelled. Dead rows of `lease` lie ahead of it. While the database is pinned they are read again and again, so only rounds
-- ask for upkeep_ms, and no nudge does.
create or replace function next_due(
  p_upkeep boolean default false, p_limits jsonb default null, out due_ms float8, out upkeep_ms float8
)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select date_part('epoch', least(
           (select run_at from scheduled where run_at > now() order by run_at limit 1),
           case when p_limits is not null then next_start(p_limits) end,
           (select min(probed_at + interval '60 s') from breaker
            where closed_at is null and probed_at > now() - interval '60 s'),
           (select min(next_at) from dead_run where state = 'running' and next_at > now())) - now()) * 1000,
         case when p_upkeep then (
           select date_part('epoch', case when at < now() then now() else at end - now()) * 1000
           from least(
             (select deadline from lease order by deadline limit 1),
             (select expires_at from expiry order by expires_at limit 1),
             next_plan_at(),
             (select next_try_at from delivery where state = 'pending' and next_try_at > now() order by next_try_at limit 1)
           ) as at)
         end
$$;

-- When the first of the types whose rate is used up, and that have jobs waiting, may start one more. That is when the start with
-- which the rate was used up leaves the window.
create or replace function next_start(p_limits jsonb) returns timestamptz
language sql stable as $$
  select min(free_at)
  from (
    select limited.type, used_up.at + make_interval(secs => (limits ->> 'seconds')::float8) as free_at
    from jsonb_each(p_limits) as limited(type, limits)
    cross join lateral (
      select started_at, started from limit_state where limit_state.type = limited.type order by id desc limit 1
    ) as state
    cross join lateral (
      select max(at) as at
      from (select at, sum(jobs) over (order by at desc, place desc) as jobs
            from unnest(started_at, started) with ordinality as start(at, jobs, place)) as newest
      where newest.jobs >= (limits ->> 'rate')::int
    ) as used_up
    offset 0
  ) as rated
  where free_at > now() and has_ready(rated.type)
$$;

-- Each lane is read from its cursor on: the rows before it may be dead ones.
create or replace function has_ready(p_type text) returns boolean
language plpgsql stable as $$
declare
  v_lane record;
begin
  for v_lane in
    select lane, coalesce(low, 0) as low
    from lane
    left join unnest((select cursor_seqs from cursors order by id desc limit 1)) with ordinality as cursor(low, lane) using (lane)
    where type = p_type
  loop
    if exists (select from ready where lane = v_lane.lane and seq >= v_lane.low order by seq limit 1) then
      return true;
    end if;
  end loop;
  return false;
end $$;
