-- deliver: sends notices to their targets.

-- Takes due deliveries of targets that are switched on, and holds them for some seconds. If the deliverer dies, the next
-- one takes them after that. A target gets the notices about one alarm in order, so that "resolved" cannot overtake
-- "firing".
create or replace function claim_deliveries(p_targets jsonb, p_limit int, p_lease_seconds float8)
returns table (id uuid, target text, notice jsonb, tries int)
language sql
security definer
set search_path from current
as $$
  with switched_on as materialized (
    select name from jsonb_to_recordset(p_targets) as target(name text, url_hash text)
    where not exists (
      select from alarm_target as known
      where known.name = target.name and known.url_hash = target.url_hash and known.gone_since is not null)
  ),
  due as materialized (
    select seq
    from delivery
    where state = 'pending' and next_try_at <= now()
      and target = any(array(select name from switched_on))
      and not exists (
        select from delivery as earlier
        where earlier.state = 'pending' and earlier.target = delivery.target and earlier.about = delivery.about
          and earlier.seq < delivery.seq)
    order by next_try_at
    limit p_limit
    for update skip locked -- another deliverer has it
  )
  update delivery
  set tries = tries + 1, next_try_at = now() + make_interval(secs => p_lease_seconds)
  where seq = any(array(select seq from due))
  returning id, target, notice, tries
$$;

-- Records how tries ended, for the deliveries and for their targets. Only the result of the latest try changes a
-- delivery. A result without an id belongs to a test notice. `gone` means that the delivery waits until the target has
-- another URL.
create or replace function settle_deliveries(p_results jsonb) returns int
language sql
security definer
set search_path from current
as $$
  with result as materialized (
    select *
    from rows from (jsonb_to_recordset(p_results) as (
      id uuid, tries int, target text, url_hash text, outcome text, status int, error text, retry_in_seconds float8
    )) with ordinality as result(id, tries, target, url_hash, outcome, status, error, retry_in_seconds, place)
  ),
  settled as (
    update delivery
    set state = case outcome when 'delivered' then 'delivered' else 'pending' end,
        ended_at = case outcome when 'delivered' then now() end,
        next_try_at = now() + make_interval(secs => coalesce(retry_in_seconds, 0)),
        status = result.status,
        error = left(result.error, 1000)
    from result
    where delivery.id = result.id and delivery.tries = result.tries and delivery.state = 'pending'
    returning delivery.id
  ),
  latest as ( -- the last answer of each target; a 410 counts even if a later answer differs
    select distinct on (target) target, url_hash, outcome, status, error
    from result
    order by target, outcome = 'gone' desc, place desc
  ),
  known as (
    insert into alarm_target as known (name, url_hash, gone_since, failing_since, delivered_at, status, error)
    select target, url_hash, case outcome when 'gone' then now() end, case outcome when 'retry' then now() end,
           case outcome when 'delivered' then now() end, status, left(error, 1000)
    from latest
    order by target
    on conflict (name) do update
    set url_hash = excluded.url_hash,
        gone_since = excluded.gone_since,
        failing_since = case when excluded.failing_since is not null and known.url_hash = excluded.url_hash
                             then coalesce(known.failing_since, excluded.failing_since)
                             else excluded.failing_since end,
        delivered_at = coalesce(excluded.delivered_at, known.delivered_at),
        status = excluded.status,
        error = excluded.error
  )
  select count(*)::int from settled
$$;

-- Gives up deliveries that failed for p_give_up_days, and removes those that ended p_keep_days ago, and alarms' events.
create or replace function prune_deliveries(p_give_up_days int, p_keep_days int, p_limit int, out given_up int, out pruned int)
language plpgsql
security definer
set search_path from current
as $$
begin
  with too_old as materialized (
    select seq from delivery
    where state = 'pending' and created_at < now() - make_interval(days => p_give_up_days)
    order by seq limit p_limit for update skip locked
  )
  update delivery set state = 'given_up', ended_at = now() where seq = any(array(select seq from too_old));
  get diagnostics given_up = row_count;
  delete from delivery
  where seq = any(array(
    select seq from delivery
    where state <> 'pending' and ended_at < now() - make_interval(days => p_keep_days)
    order by ended_at limit p_limit for update skip locked));
  get diagnostics pruned = row_count;
  delete from alarm_event
  where id = any(array(
    select id from alarm_event where at < now() - make_interval(days => p_keep_days) order by id limit p_limit));
end $$;

-- The deliveries, newest first, without their notices' bodies. p_before: the last seq of the page before.
create or replace function list_deliveries(p_before bigint, p_limit int)
returns table (seq bigint, id uuid, target text, alarm text, queue text, job_type text, notice_type text, created_at timestamptz,
               state text, tries int, next_try_at timestamptz, ended_at timestamptz, status int, error text)
language sql stable
security definer
set search_path from current
as $$
  select seq, id, target, notice #>> '{data,alarm}', notice #>> '{data,queue}', notice #>> '{data,job_type}', notice ->> 'type',
         created_at, state, tries, case state when 'pending' then next_try_at end, ended_at, status, error
  from delivery where p_before is null or seq < p_before order by seq desc limit p_limit
$$;
