-- limits: how many jobs of a type may be claimed now, across all drains? One claim at a time looks at a type, by an advisory
-- lock that lasts until the claim has committed what it took. Other claims leave the type out rather than wait.

create or replace function quota_of(
  p_type text, p_limits jsonb,
  out quota int, -- null: no limit
  out is_probe boolean,
  out is_trial boolean -- the type's breaker counts what is taken as its probe or its step
)
language plpgsql as $$
declare
  v_now   timestamptz;
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
  v_now := clock_timestamp(); -- after the lock, so that no later claim has an earlier time

  select step.quota, step.is_probe into quota, is_probe from breaker_quota(p_type, v_now) as step;
  is_trial := quota is not null;
  if v_limit is not null and quota is distinct from 0 and not is_probe then
    quota := least(quota, limit_quota(p_type, v_limit, v_now));
  end if;
end $$;

-- How many jobs of a type its own limits allow now.
create or replace function limit_quota(p_type text, p_limit jsonb, p_now timestamptz) returns int
language plpgsql as $$
declare
  v_state limit_state%rowtype;
begin
  select * into v_state from limit_state where type = p_type order by id desc limit 1;
  if p_now < any(v_state.started_at) then
    -- The clock has stepped back. Starts that lie ahead of it happened now at the latest. This is written down, so that
    -- their window ends.
    update limit_state
    set started_at = array(select least(at, p_now) from unnest(started_at) with ordinality as entry(at, place) order by place)
    where type = p_type and id = v_state.id
    returning started_at into v_state.started_at;
  end if;
  return greatest(0, least(
    (p_limit ->> 'concurrency')::int - (
      select coalesce(sum(cardinality(lease.ids)), 0)
      from lease join lane using (lane)
      where lease.key = any(v_state.lease_keys) and lane.type = p_type),
    (p_limit ->> 'rate')::int - (
      select coalesce(sum(entry.jobs), 0)
      from unnest(v_state.started_at, v_state.started) as entry(at, jobs)
      where entry.at > p_now - make_interval(secs => (p_limit ->> 'seconds')::float8))));
end $$;

-- Writes down what a claim took: for the limits of its types, and for the breaker of a type on trial.
create or replace function note_limited(p_batch claim_batch, p_limits jsonb, p_lease_key uuid) returns void
language plpgsql as $$
begin
  if p_limits is not null then
    perform count_claimed(p_limits, p_lease_key);
  end if;
  if p_batch.trial_type is not null then
    perform note_trial(p_batch.trial_type, p_lease_key, p_batch.taken[1].ids[1]);
  end if;
end $$;

-- Writes down what a claim took of the limited types, for the next claim to count. Leases that are gone and starts that are
-- past their window drop out.
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
