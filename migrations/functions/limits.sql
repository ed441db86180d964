-- Limits across all drains: how many jobs of a type may be claimed now. One claimer of a limited type at a time, by an
-- advisory lock that lasts as long as the claim; the others leave the type out rather than wait.

create or replace function quota_of(
  p_type text, p_limits jsonb,
  out quota int, -- null: no limit
  out is_probe boolean,
  out is_trial boolean -- its breaker counts what is taken as its probe or its step
)
language plpgsql as $$
declare
  v_now   timestamptz;
  v_step  int;
  v_state limit_state%rowtype;
  v_limit jsonb := p_limits -> p_type;
begin
  is_probe := false;
  is_trial := false;
  if v_limit is null and not exists (select from breaker where type = p_type and step is not null) then
    return;
  end if;
  if not pg_try_advisory_xact_lock(hashtextextended(format('sluice.type.%s.%s', current_schema(), p_type), 0)) then
    quota := 0;
    return;
  end if;
  v_now := clock_timestamp(); -- after the lock: one clock reading stamps and checks

  select step.quota, step.is_probe into v_step, is_probe from breaker_quota(p_type, v_now) as step;
  is_trial := v_step is not null;
  quota := v_step;
  if v_limit is null or v_step = 0 or is_probe then
    return;
  end if;

  select * into v_state from limit_state where type = p_type order by id desc limit 1;
  if v_now < any(v_state.started_at) then
    -- The clock has stepped back: what lies ahead of it was started now at the latest. Kept, so that its window ends.
    update limit_state
    set started_at = array(select least(at, v_now) from unnest(started_at) with ordinality as entry(at, place) order by place)
    where type = p_type and id = v_state.id
    returning started_at into v_state.started_at;
  end if;
  select least(
    v_step,
    (v_limit ->> 'concurrency')::int - (
      select coalesce(sum(cardinality(lease.ids)), 0)
      from lease join lane using (lane)
      where lease.key = any(v_state.lease_keys) and lane.type = p_type),
    (v_limit ->> 'rate')::int - (
      select coalesce(sum(window_of.started), 0)
      from unnest(v_state.started_at, v_state.started) as window_of(started_at, started)
      where window_of.started_at > v_now - make_interval(secs => (v_limit ->> 'seconds')::float8)))
  into quota;
  quota := greatest(quota, 0);
end $$;

-- What a claim took of the limited types, for the next one to count. Leases that are gone and starts that are past
-- their window drop out.
create or replace function count_claimed(p_limits jsonb, p_lease_key uuid) returns void
language plpgsql as $$
declare
  v_taken record;
  v_state limit_state%rowtype;
  v_now   timestamptz := clock_timestamp();
begin
  for v_taken in
    select lane.type, sum(cardinality(lease.ids))::int as jobs, p_limits -> lane.type as limits
    from lease join lane using (lane)
    where lease.key = p_lease_key and p_limits ? lane.type
    group by lane.type
  loop
    select * into v_state from limit_state where type = v_taken.type order by id desc limit 1;
    delete from limit_state where type = v_taken.type and id <= v_state.id;
    insert into limit_state (type, lease_keys, started_at, started)
    values (
      v_taken.type,
      array(select distinct key from lease where key = any(v_state.lease_keys)) || p_lease_key,
      array(select at from unnest(v_state.started_at) as at
            where at > v_now - make_interval(secs => coalesce((v_taken.limits ->> 'seconds')::float8, 0))) || v_now,
      array(select entry.jobs from unnest(v_state.started_at, v_state.started) as entry(at, jobs)
            where entry.at > v_now - make_interval(secs => coalesce((v_taken.limits ->> 'seconds')::float8, 0)))
        || v_taken.jobs);
  end loop;
end $$;
