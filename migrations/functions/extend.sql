-- extend: holds some claimed jobs for longer, by a duration and never to a time. Fenced as settle is; returns the
-- jobs that are still held. Where only some jobs of a lease are extended they are split off under the same
-- key.

create or replace function extend(p_ids uuid[], p_keys uuid[], p_seconds float8)
returns table (id uuid, key uuid, lease_expires_at timestamptz)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_deadline timestamptz := clock_timestamp() + make_interval(secs => p_seconds);
begin
  perform lock_leases(p_keys);

  return query
    with held as materialized (
      select lease.ctid as tid, lease.key, lease.deadline, lease.started_at, lease.lane, lease.worker, entry.*,
             exists (select from unnest(p_ids, p_keys) as asked(id, key)
                     where asked.id = entry.id and asked.key = lease.key) as is_asked
      from lease
      cross join lateral unnest(ids, attempts, abandonments) with ordinality as entry(id, attempt, abandonments, place)
      where lease.key = any(p_keys)
    ),
    packed as materialized (
      select tid, is_asked, key, deadline, started_at, lane, worker,
             array_agg(id order by place) as ids,
             case when count(attempt) > 0 then array_agg(attempt order by place) end as attempts,
             case when count(abandonments) > 0 then array_agg(abandonments order by place) end as abandonments,
             bool_and(is_asked) over (partition by tid) as is_whole
      from held
      group by tid, is_asked, key, deadline, started_at, lane, worker
    ),
    kept as (
      update lease
      set deadline = greatest(lease.deadline, v_deadline)
      from packed
      where lease.ctid = packed.tid and packed.is_whole
    ),
    torn as ( -- removed, not shrunk: whoever waits for it finds it gone and looks for both parts
      delete from lease where ctid = any(array(select tid from packed where is_asked and not is_whole)) returning ctid
    ),
    parts as (
      insert into lease (key, deadline, started_at, lane, worker, ids, attempts, abandonments)
      select key, case when is_asked then greatest(deadline, v_deadline) else deadline end, started_at, lane,
             worker, ids, attempts, abandonments
      from packed
      where tid = any(array(select ctid from torn))
    )
    select held.id, held.key, greatest(held.deadline, v_deadline) from held where is_asked;
end $$;
