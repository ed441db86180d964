-- extend: moves the deadline of claimed jobs to `p_seconds` from now, never to an earlier time. It applies only while the
-- lease of the given key still holds the job, as in settle. Returns the jobs that it applied to, and whether each of them was
-- asked to stop (cancel.sql). When it extends only some
-- jobs of a lease, they get a lease row of their own with the same key. A run of jobs of one partition key is extended as a
-- whole, so that it always lies in one row. The grant of their turns (dispatch.sql) stays with the other jobs.
--
-- Locks: the lease rows, in the order that lock_leases gives. The statement after it has a fresh snapshot, so it sees what
-- those that it waited for have left.

create or replace function extend(p_ids uuid[], p_keys uuid[], p_seconds float8)
returns table (id uuid, key uuid, lease_expires_at timestamptz, cancel_requested boolean)
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
  select ids, keys into p_ids, p_keys from with_whole_runs(p_ids, p_keys);

  return query
    with leased as materialized (
      select lease.ctid as tid, lease.key, lease.deadline, lease.started_at, lease.lane, lease.worker, lease.linked,
             lease.grant_id, lease.apart, entry.*,
             exists (select from unnest(p_ids, p_keys) as wanted(id, key)
                     where wanted.id = entry.id and wanted.key = lease.key) as is_wanted
      from lease
      cross join lateral unnest(ids, attempts, abandonments, keys, places) with ordinality
        as entry(id, attempt, abandonments, turn_key, turn_place, place)
      where lease.key = any(p_keys)
    ),
    packed as materialized (
      select tid, is_wanted, key, deadline, started_at, lane, worker, linked, grant_id, apart,
             array_agg(id order by place) as ids,
             case when count(attempt) > 0 then array_agg(attempt order by place) end as attempts,
             case when count(abandonments) > 0 then array_agg(abandonments order by place) end as abandonments,
             case when count(turn_key) > 0 then array_agg(turn_key order by place) end as keys,
             case when count(turn_key) > 0 then array_agg(turn_place order by place) end as places,
             bool_and(is_wanted) over (partition by tid) as is_whole
      from leased
      group by tid, is_wanted, key, deadline, started_at, lane, worker, linked, grant_id, apart
    ),
    prolonged as (
      update lease
      set deadline = greatest(lease.deadline, v_deadline)
      from packed
      where lease.ctid = packed.tid and packed.is_whole
    ),
    split as ( -- deleted, not shrunk: whoever waits for this row finds it gone and looks for both parts
      delete from lease where ctid = any(array(select tid from packed where is_wanted and not is_whole)) returning ctid
    ),
    parts as (
      insert into lease (key, deadline, started_at, lane, worker, ids, attempts, abandonments, keys, places, linked, grant_id, apart)
      select key, case when is_wanted then greatest(deadline, v_deadline) else deadline end, started_at, lane,
             worker, ids, attempts, abandonments, keys, places, linked, case when not is_wanted then grant_id end,
             case when not is_wanted and grant_id is not null
                  then apart || (select keys from packed as other where other.tid = packed.tid and other.is_wanted) end
      from packed
      where tid = any(array(select ctid from split))
    )
    select leased.id, leased.key, greatest(leased.deadline, v_deadline),
           exists (select from cancel_request where cancel_request.id = leased.id)
    from leased where is_wanted;
end $$;

-- The jobs and their lease keys, and the other jobs of their runs. Called while the leases are locked.
create or replace function with_whole_runs(p_ids uuid[], p_keys uuid[], out ids uuid[], out keys uuid[])
language plpgsql as $$
begin
  ids := p_ids;
  keys := p_keys;
  if exists (select from lease join lane using (lane) where lease.key = any(p_keys) and lane.kind = 'ordered') then
    with leased as materialized (
      select lease.ctid as tid, lease.key, entry.id, entry.turn_key
      from lease join lane using (lane)
      cross join lateral unnest(lease.ids, lease.keys) as entry(id, turn_key)
      where lease.key = any(p_keys) and lane.kind = 'ordered'
    )
    select p_ids || array_agg(other.id), p_keys || array_agg(other.key) into ids, keys
    from unnest(p_ids, p_keys) as wanted(id, key)
    join leased using (id, key)
    join leased as other on other.tid = leased.tid and other.turn_key = leased.turn_key and other.id <> leased.id;
    ids := coalesce(ids, p_ids);
    keys := coalesce(keys, p_keys);
  end if;
end $$;

-- Extends one job. Answers as answer_with_job does, with `cancel_requested`; `applied` is false when the lease is lost.
create or replace function extend_one(p_id uuid, p_key uuid, p_seconds float8) returns jsonb
language plpgsql
security definer
set search_path from current
as $$
declare
  v_asked boolean := (select cancel_requested from extend(array[p_id], array[p_key], p_seconds) where id = p_id);
begin
  return answer_with_job(p_id, v_asked is not null) || jsonb_build_object('cancel_requested', coalesce(v_asked, false));
end $$;
