-- next_due: in how many milliseconds the next thing is due. The clock (docs/clock.md) is told this, so that somebody comes back then.
--   due_ms     for a drain: a scheduled job, a retry, a time-out of a wait, the next probe of an open breaker, or the next
--              step of a run over dead letters
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
create or replace function next_due(p_upkeep boolean default false, out due_ms float8, out upkeep_ms float8)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select date_part('epoch', least(
           (select run_at from scheduled where run_at > now() order by run_at limit 1),
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
