-- return turns: gives turns back. They are rows of `ready` in the queue's lane of kind `returns`, so an open transaction and a
-- pinned database are no matter. The dispatcher removes them. They have ids of their own: an id of a job would be found by
-- whoever looks for the job.

-- p_pairs: a key and the place up to which it was worked, and so on. A negative place gives no turn back; it only has the
-- dispatcher look at the key.
create or replace function return_turns(p_queue text, p_pairs bigint[]) returns void
language plpgsql as $$
declare
  c_numbers constant int := 200; -- 100 pairs: Postgres keeps larger rows elsewhere
begin
  if cardinality(p_pairs) > 0 then
    insert into ready (seq, id, lane, returned)
    select nextval('ready_seq'), new_id(), returns_lane_of(p_queue), p_pairs[n : n + c_numbers - 1]
    from generate_series(1, cardinality(p_pairs), c_numbers) as n;
  end if;
end $$;

-- The turns of jobs that have been completed: one for each ordered key, one for each job of a fair key. p_except: keys of
-- which other jobs were settled in another way, so that fail_jobs decides.
create or replace function return_completed(p_jobs settled_job[], p_except bigint[] default '{}') returns void
language plpgsql as $$
begin
  perform return_turns(queue, array_agg(pair))
  from (
    select lane.queue, job.key, max(job.place) as place
    from unnest(p_jobs) as job join lane using (lane)
    where job.key is not null and (lane.kind = 'fair' or job.is_last and job.key <> all(p_except))
    group by lane.queue, job.key, case when lane.kind = 'fair' then job.id end
  ) as ended
  cross join lateral unnest(array[key, place]) as pair
  group by queue;
end $$;

-- The same for whole leases, before they are deleted.
create or replace function return_turns_of_leases(p_leases tid[]) returns void
language plpgsql as $$
begin
  perform return_turns(queue, array_agg(pair))
  from (
    select lane.queue, entry.key, max(entry.place) as place
    from lease join lane using (lane)
    cross join lateral unnest(keys, places) with ordinality as entry(key, place, number)
    where lease.ctid = any(p_leases) and lease.keys is not null
    group by lane.queue, entry.key, case when lane.kind = 'fair' then lease.lock_order end,
             case when lane.kind = 'fair' then entry.number end
  ) as ended
  cross join lateral unnest(array[key, place]) as pair
  group by queue;
end $$;

-- Turns of jobs that were cancelled, have expired, or were dead and blocked their keys.
create or replace function return_held_turns(p_turns held_turn[]) returns void
language plpgsql as $$
begin
  perform return_turns(queue, array_agg(pair))
  from unnest(p_turns) as turn join lane using (lane)
  cross join lateral unnest(array[turn.key, turn.place]) as pair
  group by queue;
end $$;
