-- Circuit breakers: opened and closed by the drains, which judge; enforced by the claim (quota_of).
--
-- An open breaker lets one job a minute through, the probe. When a probe succeeds the breaker closes, but a type that has
-- just failed is not trusted with its whole backlog at once: the claims after that take 4, 16 and 64 jobs, each step when
-- all jobs of the step before have ended and the drains did not open the breaker again; then all. After five minutes
-- the steps end in any case, since a step of long handlers would hold the type up.
--
-- Probes and steps take the jobs that were tried most often (take_tried). They are the likeliest to succeed: of a type
-- that works at the second try, a probe that is always some other job's first try never would.

-- How a type's attempts ended everywhere in the last five minutes, and since its breaker last closed. By the minute where
-- the books are folded: an open breaker lets hardly anything through in the minute before it closes.
create or replace function recent_attempts(p_type text, out completed bigint, out failed bigint)
language sql stable
security definer
set search_path from current
as $$
  with since as (
    select greatest(now() - interval '5 minutes',
                    (select closed_at from breaker where type = p_type)) as moment
  )
  select coalesce(sum(entries.completed), 0), coalesce(sum(entries.failed), 0)
  from lane
  join (
    select lane, tally.completed, tally.failed from tally, since where minute >= date_trunc('minute', since.moment)
    union all
    select lane, ledger.completed, ledger.failed from ledger, since where at > since.moment
  ) as entries using (lane)
  where lane.type = p_type
$$;

-- True: it was closed.
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

-- True: it was open.
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

-- The same for a puller, whose word that its job was a probe is not enough. The type is the job's own. Only probes are
-- claimed while a breaker is open, and the generation of a lease is the time of its claim, or up to a second before it.
create or replace function close_breaker_by_probe(p_id uuid, p_lease_key uuid) returns boolean
language sql
security definer
set search_path from current
as $$
  select coalesce(bool_or(close_breaker(type)), false)
  from job join lane using (lane) join breaker using (type)
  where job.id = p_id and generation_of(p_lease_key) > extract(epoch from opened_at) * 1000000
$$;

-- How many jobs of a type its breaker lets through now; null: as many as there are. Called under the type's advisory
-- lock, which lasts until the claim has noted what it took (note_trial): so two claims never take the same step.
-- A time in the future means that the clock was set back: nobody waits for it.
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
    is_probe := v_breaker.probed_at not between p_now - interval '60 s' and p_now;
    quota := is_probe::int;
  elsif v_breaker.closed_at not between p_now - interval '5 minutes' and p_now then
    update breaker set step = null where type = p_type and closed_at is not null;
  elsif exists (select from lease where key = v_breaker.step_lease) then
    quota := 0; -- the step before has not ended
  elsif v_breaker.step > 64 then
    update breaker set step = null where type = p_type and closed_at is not null;
  else
    quota := v_breaker.step;
  end if;
end $$;

-- A claim took a probe or a step. A job that probes goes on probing until it ends, also where it is far behind others.
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
