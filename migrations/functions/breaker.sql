-- Circuit breakers: opened and closed by the drains, which judge; enforced by the claim (quota_of).

-- How a type's attempts ended everywhere in the last five minutes, and since its breaker last closed.
create or replace function recent_attempts(p_type text, out completed bigint, out failed bigint)
language sql stable
set search_path from current
as $$
  with since as (
    select greatest(now() - interval '5 minutes',
                    (select closed_at from breaker where type = p_type)) as moment
  )
  select coalesce(sum(entries.completed), 0), coalesce(sum(entries.failed), 0)
  from lane
  join (
    select lane, tally.completed, tally.failed from tally, since where minute >= since.moment
    union all
    select lane, ledger.completed, ledger.failed from ledger, since where at > since.moment
  ) as entries using (lane)
  where lane.type = p_type
$$;

-- True: it was closed.
create or replace function open_breaker(p_type text) returns boolean
language sql
set search_path from current
as $$
  with opened as (
    insert into breaker (type, opened_at, probed_at) values (p_type, now(), now())
    on conflict (type) do update set opened_at = now(), probed_at = now(), closed_at = null
    where breaker.closed_at is not null
    returning 1
  )
  select exists (select from opened)
$$;

-- True: it was open.
create or replace function close_breaker(p_type text) returns boolean
language sql
set search_path from current
as $$
  with closed as (
    update breaker set closed_at = now() where type = p_type and closed_at is null returning 1
  )
  select exists (select from closed)
$$;
