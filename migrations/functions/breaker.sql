-- Circuit breakers. Whoever settles a failed attempt judges whether its type's breaker opens (core/policy/attempt-end.ts).
-- The claim enforces it (quota_of).
--
-- An open breaker lets one job a minute through, the probe. A probe that completes closes the breaker. A type that has
-- just failed does not get its whole backlog at once: the next claims take 4, 16 and 64 jobs, and then all. A step begins
-- when all jobs of the step before have ended and the breaker was not opened again. The steps end with the window in any
-- case, since a step of long handlers would hold the type up.
--
-- Probes and steps take the jobs that were tried most often (take_tried), because these are the likeliest to succeed. If a
-- type works at the second try, a probe that is always some other job's first try would never complete.

-- How far back attempts count, and how long a breaker that has closed lets jobs through by steps.
create or replace function breaker_window() returns interval
language sql immutable
return interval '5 minutes';

-- A probe that lies in the future means that the clock was set back: nobody waits for it.
create or replace function is_probe_due(p_probed_at timestamptz, p_now timestamptz) returns boolean
language sql immutable
return p_probed_at not between p_now - interval '60 s' and p_now;

-- How a type's attempts ended everywhere within the window, and since its breaker last closed. The part of the books that
-- is folded is only known by the minute. That is close enough: an open breaker lets hardly anything through in the minute
-- before it closes.
create or replace function recent_attempts(
  p_type text, out completed bigint, out failed bigint, out is_on_trial boolean
)
language sql stable
security definer
set search_path from current
as $$
  with since as (
    select greatest(now() - breaker_window(),
                    (select closed_at from breaker where type = p_type)) as moment
  )
  select coalesce(sum(entries.completed), 0), coalesce(sum(entries.failed), 0),
         exists (select from breaker where type = p_type and step is not null and closed_at > now() - breaker_window())
  from lane
  join (
    select lane, tally.completed, tally.failed from tally, since where minute >= date_trunc('minute', since.moment)
    union all
    select lane, ledger.completed, ledger.failed from ledger, since where at > since.moment
  ) as entries using (lane)
  where lane.type = p_type
$$;

-- Answers true if the breaker was closed.
create or replace function open_breaker(p_type text) returns boolean
language sql
security definer
set search_path from current
as $$
  with opened as (
    insert into breaker (type, opened_at, probed_at) values (p_type, now(), now())
    on conflict (type) do update
      set opened_at = now(), probed_at = now(), closed_at = null, step = 1, step_lease = null, probe_id = null
    where breaker.closed_at is not null
    returning 1
  )
  select exists (select from opened)
$$;

-- Answers true if the breaker was open.
create or replace function close_breaker(p_type text) returns boolean
language sql
security definer
set search_path from current
as $$
  with closed as (
    update breaker set closed_at = greatest(now(), opened_at), step = 4, step_lease = null, probe_id = null
    where type = p_type and closed_at is null
    returning 1
  )
  select exists (select from closed)
$$;

-- A probe has completed. A puller could say so of any job, so this does not trust its caller: the type is read from the
-- job, and the lease must be younger than the opening of the breaker, since only probes are claimed while it is open. The
-- generation of a lease is the time of its claim, or up to a second before it.
create or replace function close_breaker_by_probe(p_id uuid, p_lease_key uuid) returns boolean
language sql
security definer
set search_path from current
as $$
  select coalesce(bool_or(close_breaker(type)), false)
  from job join lane using (lane) join breaker using (type)
  where job.id = p_id and generation_of(p_lease_key) > extract(epoch from opened_at) * 1000000
$$;

-- How many jobs of a type its breaker lets through now. Null means no bound. It is called under the type's advisory lock,
-- which lasts until the claim has noted what it took (note_trial), so two claims never take the same step.
create or replace function breaker_quota(p_type text, p_now timestamptz, out quota int, out is_probe boolean)
language plpgsql as $$
declare
  v_breaker breaker%rowtype;
begin
  is_probe := false;
  select * into v_breaker from breaker where type = p_type and step is not null;
  if not found then
    return;
  end if;
  if v_breaker.closed_at is null then
    is_probe := is_probe_due(v_breaker.probed_at, p_now);
    quota := is_probe::int;
  elsif v_breaker.closed_at not between p_now - breaker_window() and p_now then
    update breaker set step = null where type = p_type and closed_at is not null;
  elsif exists (select from lease where key = v_breaker.step_lease) then
    quota := 0; -- the step before has not ended
  elsif v_breaker.step > 64 then
    update breaker set step = null where type = p_type and closed_at is not null;
  else
    quota := v_breaker.step;
  end if;
end $$;

-- A claim took a probe or a step. The job of a probe stays the probe until it ends, however many jobs wait before it.
create or replace function note_trial(p_type text, p_lease_key uuid, p_probe uuid) returns void
language sql as $$
  update breaker
  set step_lease = p_lease_key,
      step = case when closed_at is null then 1 else step * 4 end,
      probed_at = case when closed_at is null then clock_timestamp() else probed_at end,
      probe_id = case when closed_at is not null then null
                      when exists (select from scheduled where id = probe_id) then probe_id
                      when exists (select from ready where id = probe_id) then probe_id
                      else p_probe end
  where type = p_type and step is not null
$$;
