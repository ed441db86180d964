-- return turns: gives turns back. They are rows of `ready` in the queue's lane of kind `returns`, so an open transaction and a
-- pinned database are no matter. The dispatcher removes them. They have ids of their own: an id of a job would be found by
-- whoever looks for the job.

-- Keys, and the place up to which each was worked. An ordered key has one turn, so it must be named once: the dispatcher may take
-- these turns at different times. The jobs of a fair key end in any order, so their places are none: 0 for a job that was claimed,
-- 1 for one that had a turn and was not claimed yet.
-- A negative place gives no turn back; it only has the dispatcher look at the key.
create or replace function return_turns(p_queue text, p_keys bigint[], p_places bigint[]) returns void
language plpgsql as $$
declare
  c_turns constant int := 100; -- in one row: Postgres keeps larger rows elsewhere
  v_lane  int;
begin
  if cardinality(p_keys) > 0 then
    v_lane := returns_lane_of(p_queue);
    insert into ready (seq, id, lane, returned)
    select nextval('ready_seq'), new_id(), v_lane, p_keys[n : n + c_turns - 1] || p_places[n : n + c_turns - 1]
    from generate_series(1, cardinality(p_keys), c_turns) as n;
  end if;
end $$;

-- The turns of jobs that have been completed. p_except: keys of which other jobs were settled in another way, so that
-- judge_jobs decides. A job of a run of which others are still leased gives none back.
create or replace function return_completed(p_jobs settled_job[], p_except bigint[]) returns void
language plpgsql as $$
begin
  perform return_turns(queue, array_agg(key order by place), array_agg(place order by place))
  from (
    select queue, key, 0 as place
    from unnest(p_jobs) as job join lane using (lane) where lane.kind = 'fair' and job.key is not null
    union all
    select queue, key, max(place)
    from unnest(p_jobs) as job join lane using (lane)
    where lane.kind = 'ordered' and job.is_last and job.key <> all(p_except)
    group by queue, key
  ) as turn
  group by queue;
end $$;

-- The end of a grant: all turns that are part of it come back, but not those of p_apart, whose jobs have left the lease before
-- or do not complete. These have events of their own, or their jobs keep them.
create or replace function return_grant(p_queue text, p_grant_id bigint, p_apart bigint[]) returns void
language plpgsql as $$
begin
  insert into ready (seq, id, lane, place, returned)
  values (nextval('ready_seq'), new_id(), returns_lane_of(p_queue), p_grant_id, coalesce(p_apart, '{}'));
end $$;

-- The turns of whole leases, before they are deleted. Answers the grants of p_queue that have ended, if nothing more is to be
-- said about them: the caller is going to dispatch, and no row has to be written for them.
create or replace function return_turns_of_leases(p_leases tid[], p_queue text) returns bigint[]
language plpgsql as $$
declare
  v_lease record;
  v_ended bigint[];
begin
  for v_lease in
    select queue, kind, keys, places, grant_id, apart
    from lease join lane using (lane)
    where lease.ctid = any(p_leases) and keys is not null
  loop
    if v_lease.kind = 'fair' then
      perform return_turns(v_lease.queue, v_lease.keys, array_fill(0::bigint, array[cardinality(v_lease.keys)]));
    elsif v_lease.grant_id is null then
      perform return_turns(v_lease.queue, array_agg(key order by place), array_agg(place order by place))
      from (select key, max(place) as place from unnest(v_lease.keys, v_lease.places) as job(key, place) group by key) as turn;
    elsif v_lease.queue = p_queue and v_lease.apart is null then
      v_ended := v_ended || v_lease.grant_id;
    else
      perform return_grant(v_lease.queue, v_lease.grant_id, v_lease.apart);
    end if;
  end loop;
  return v_ended;
end $$;

-- The grants of leases that jobs have left one by one, until none was left.
create or replace function return_emptied_grants(p_jobs settled_job[]) returns void
language plpgsql as $$
begin
  perform return_grant(queue, ended_grant, apart || array(select distinct key from unnest(p_jobs)))
  from (select distinct on (ended_grant) ended_grant, apart, lane from unnest(p_jobs) where ended_grant is not null) as ended
  join lane using (lane);
end $$;

-- Turns of jobs that were cancelled or have expired before they were claimed, or that were dead and blocked their keys.
create or replace function return_held_turns(p_turns held_turn[]) returns void
language plpgsql as $$
begin
  perform return_turns(queue, array_agg(key), array_agg(case when kind = 'fair' then 1 else place end))
  from unnest(p_turns) as turn join lane using (lane)
  group by queue;
end $$;
