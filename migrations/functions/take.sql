-- take: moves the oldest jobs of some lanes out of `ready` and into a batch.

-- Takes up to p_batch.jobs_left jobs, oldest first across all lanes of the level.
create or replace function take_oldest(p_batch claim_batch, p_level lane_level) returns claim_batch
language plpgsql as $$
declare
  c_no_end constant bigint := 9223372036854775807;
  v_wanted int := p_batch.jobs_left;
  v_lanes  int := cardinality(p_level.lanes);
  v_last   bigint; -- the seq of the last job that is wanted
begin
  if v_lanes > 1 then
    v_last := look_ahead(p_level, v_wanted);
    for n in 1 .. v_lanes loop
      exit when p_batch.jobs_left = 0 or (p_level.oldest_seqs[n] > v_last);
      p_batch := take_lane(p_batch, p_level, n, v_last);
    end loop;
    if p_batch.jobs_left < v_wanted then -- some were taken
      p_batch.has_more := p_batch.has_more or has_later_jobs(p_level, v_last);
      return p_batch;
    end if;
  end if;

  -- There is one lane; or other claims took or locked all that the look ahead has found: then whatever comes next in
  -- each lane.
  for n in 1 .. v_lanes loop
    p_batch := take_lane(p_batch, p_level, n, c_no_end);
    if p_batch.jobs_left = 0 then
      p_batch.has_more := p_batch.has_more or (n < v_lanes) or exists (
        select from ready
        where lane = p_level.lanes[n] and seq > p_batch.last_seq
        order by seq
        limit 1);
      exit;
    end if;
  end loop;
  return p_batch;
end $$;

-- How far the p_wanted oldest jobs of several lanes reach: the seq of the last of them. It locks nothing, so that no
-- job is locked which an older job of another lane then displaces.
--
-- Seqs are given out in order, so the wanted jobs of several lanes lie close together most often. A look with no bound
-- would read p_wanted rows of each lane; so the first looks are bounded, and a further one follows where they find too
-- few (a claim of 100 jobs of seven types took 0.87 of the time).
create or replace function look_ahead(p_level lane_level, p_wanted int) returns bigint
language plpgsql as $$
declare
  c_reaches constant int[] := array[2, 16, null]; -- times the number of wanted jobs; null: no bound
  v_oldest  bigint := p_level.oldest_seqs[1];
  v_reach   int;
  v_last    bigint;
  v_found   int;
begin
  if p_wanted = 1 then
    return v_oldest;
  end if;
  foreach v_reach in array c_reaches loop
    select max(seq), count(*) into v_last, v_found
    from (
      select ahead.seq
      from unnest(p_level.lanes, p_level.oldest_seqs) as entry(lane, oldest_seq)
      cross join lateral (
        select seq
        from ready
        where ready.lane = entry.lane and seq >= entry.oldest_seq
          and seq < coalesce(v_oldest + v_reach * p_wanted, 9223372036854775807)
        order by seq
        limit p_wanted
      ) as ahead
      order by ahead.seq
      limit p_wanted
    ) as wanted;
    exit when v_found = p_wanted;
  end loop;
  return coalesce(v_last, v_oldest);
end $$;

create or replace function has_later_jobs(p_level lane_level, p_seq bigint) returns boolean
language plpgsql as $$
begin
  return p_level.oldest_seqs[cardinality(p_level.oldest_seqs)] > p_seq
    or exists (
      select
      from unnest(p_level.lanes) as entry(lane)
      cross join lateral (
        select from ready where ready.lane = entry.lane and seq > p_seq order by seq limit 1
      ) as later);
end $$;

-- Takes the oldest jobs of the level's nth lane, up to p_last. It locks them, reads what they are, and removes them from
-- `ready`. A locked row keeps its place in the table, so its tid still names it in the statement that removes it.
-- p_given: the jobs to take, whose rows are locked already.
create or replace function take_lane(
  p_batch claim_batch, p_level lane_level, n int, p_last bigint, p_given locked_jobs default null
) returns claim_batch
language plpgsql as $$
declare
  c_skip_marked_from constant int := 50; -- jobs; see lock_unmarked_jobs
  v_skip_marked      boolean := p_batch.jobs_left >= c_skip_marked_from and cardinality(p_level.lanes) = 1;
  v_lane             int := p_level.lanes[n];
  v_locked           locked_jobs;
  v_jobs             json;
  v_bytes            bigint;
  v_some_expired     boolean;
  v_waited           real[]; -- seconds, of the jobs that were not attempted before
  v_linked           linked_job[];
  v_needs_note       boolean; -- there is more to do for these than to mark the lease
begin
  loop
    if p_given.tids is not null then
      v_locked := p_given;
    elsif p_level.kinds[n] <> 'plain' then
      v_locked := lock_turns(p_batch, p_level, n, p_last);
    elsif v_skip_marked then
      v_locked := lock_unmarked_jobs(v_lane, p_level.oldest_seqs[n], p_last, p_batch.jobs_left);
    else
      v_locked := lock_jobs(v_lane, p_level.oldest_seqs[n], p_last, p_batch.jobs_left);
    end if;
    if v_locked.ids is null then
      return p_batch;
    end if;

    select json_agg(json_build_array(id, payload, max_attempts, partition_key, traceparent, tags,
                                     case when id = any(v_locked.retried_ids) then errors_of(id) end, fair_key) order by id),
           sum(payload_bytes(payload)),
           bool_or(expiry_of(id, expires_at) <= p_batch.at),
           array_agg(date_part('epoch', p_batch.at - coalesce(scheduled_at, time_of_id(id)))::real)
             filter (where id <> all(v_locked.retried_ids)),
           array_agg(row(id, flow, waits, schedule)::linked_job) filter (where chain is not null or schedule is not null)
    into v_jobs, v_bytes, v_some_expired, v_waited, v_linked
    from job
    where id = any(v_locked.ids)
      and id >= v_locked.ids[1] and id <= v_locked.ids[cardinality(v_locked.ids)]; -- names the partitions
    v_needs_note := v_linked is not null and needs_note(v_linked);
    if v_some_expired then
      if p_level.kinds[n] = 'plain' then
        perform bury_expired(v_lane, v_locked.ids, p_batch.at);
      else
        perform bury_expired_turns(p_batch, p_level, n, v_locked);
        p_batch.turns_returned := true;
      end if;
      p_batch.some_expired := true;
      return p_batch;
    elsif v_needs_note and cancel_strays(v_linked) then
      p_batch.turns_returned := p_batch.turns_returned or (p_level.kinds[n] <> 'plain');
      p_batch.some_expired := true; -- as with those: the choice was made by jobs that are gone now
      return p_batch;
    end if;
    exit when v_bytes <= p_batch.bytes_left or (p_batch.taken is null and cardinality(v_locked.ids) = 1);

    -- Too large for one answer: only as many as fit, and the claim is full with them.
    p_batch.has_more := true;
    p_batch.jobs_left := greatest(how_many_fit(v_locked, p_batch.bytes_left), (p_batch.taken is null)::int);
    if p_batch.jobs_left = 0 then
      return p_batch;
    end if;
    v_skip_marked := false; -- it would pass over what this claim has locked
    p_given := first_places(p_given, p_batch.jobs_left);
  end loop;
  return add_to_batch(p_batch, p_level, n, v_locked, v_jobs, v_bytes, v_waited, v_linked, v_needs_note);
end $$;

-- Locks the oldest jobs of a lane that no other claim has locked. It locks no job beyond p_limit, not even to see that
-- there are more: another claim would pass over it and take a worse one.
create or replace function lock_jobs(
  p_lane int, p_first bigint, p_last bigint, p_limit int, p_skip_marked boolean default false
) returns locked_jobs
language plpgsql as $$
declare
  v_jobs              locked_jobs;
  v_most_attempts     smallint;
  v_most_abandonments smallint;
begin
  select array_agg(tid), array_agg(id order by id), array_agg(seq order by id), max(seq), max(attempt), max(abandonments)
  into v_jobs.tids, v_jobs.ids, v_jobs.seqs, v_jobs.last_seq, v_most_attempts, v_most_abandonments
  from (
    select ctid as tid, seq, id, attempt, abandonments
    from ready
    where lane = p_lane and seq >= p_first and seq <= p_last and (not p_skip_marked or xmax = 0)
    order by seq
    limit p_limit
    for update skip locked
  ) as locked;
  v_jobs.retried_ids := '{}';
  if v_most_attempts > 0 or v_most_abandonments > 0 then
    select case when v_most_attempts > 0 then array_agg((attempt + 1)::smallint order by id) end,
           case when v_most_abandonments > 0 then array_agg(abandonments order by id) end,
           coalesce(array_agg(id) filter (where attempt > 0), '{}')
    into v_jobs.attempts, v_jobs.abandonments, v_jobs.retried_ids
    from ready where ctid = any(v_jobs.tids);
  end if;
  return v_jobs;
end $$;

-- The same for a large claim from one lane, which passes over rows that bear a mark. A row that another claim has locked or
-- deleted bears that transaction's id in xmax. To find out that a row is locked costs more than to lock a free one.
-- Measured: claims of 100 on 8 connections take 0.85 of the time, claims of 10 gain nothing, so claims of 50 and more
-- do it (docs/decisions/speed.md).
--
-- The mark stays after the other claim was rolled back, so a marked row may be free. It must be taken when it is the
-- oldest, or when there are not enough without it: then nothing is passed over.
create or replace function lock_unmarked_jobs(p_lane int, p_first bigint, p_last bigint, p_limit int)
returns locked_jobs
language plpgsql as $$
declare
  v_jobs locked_jobs := lock_jobs(p_lane, p_first, p_last, p_limit, true);
begin
  if cardinality(v_jobs.ids) = p_limit and (p_first = any(v_jobs.seqs) or not lock_row(p_lane, p_first)) then
    return v_jobs;
  end if;
  return lock_jobs(p_lane, p_first, p_last, p_limit);
end $$;

-- False: another transaction has locked or removed it.
create or replace function lock_row(p_lane int, p_seq bigint) returns boolean
language plpgsql as $$
begin
  perform from ready where lane = p_lane and seq = p_seq for update skip locked;
  return found;
end $$;

create or replace function add_to_batch(
  p_batch claim_batch, p_level lane_level, n int, p_locked locked_jobs, p_jobs json, p_bytes bigint, p_waited real[],
  p_linked linked_job[], p_needs_note boolean
) returns claim_batch
language plpgsql as $$
declare
  v_count    int := cardinality(p_locked.ids);
  v_blockers jsonb;
  v_schedules jsonb;
begin
  delete from ready where ctid = any(p_locked.tids);
  insert into ledger (lane, pending, leased, waiting_seconds) values (p_level.lanes[n], -v_count, v_count, p_waited);

  p_batch.jobs_left := p_batch.jobs_left - v_count;
  p_batch.bytes_left := p_batch.bytes_left - p_bytes;
  p_batch.last_seq := p_locked.last_seq;
  if p_needs_note then
    select bytes_left, blockers, schedules into p_batch.bytes_left, v_blockers, v_schedules
    from note_linked_taken(p_linked, p_batch.bytes_left);
  end if;
  if p_linked is not null then
    v_blockers := coalesce(v_blockers, '{}'); -- not null: some of the jobs are linked
  end if;
  p_batch.taken := p_batch.taken
    || row(p_level.lanes[n], p_level.types[n], p_level.priority, p_locked.ids, p_locked.seqs, p_locked.attempts,
           p_locked.abandonments, p_jobs, p_locked.keys, p_locked.places, p_level.kinds[n],
           case when p_linked is not null then true end, v_blockers, v_schedules, p_locked.grant_id, null)::taken_jobs;
  if p_level.kinds[n] = 'fair' then
    p_batch.turns_returned := note_shares_taken(p_batch.policy, p_locked.keys) or p_batch.turns_returned;
  end if;
  return p_batch;
end $$;

-- How many of these jobs, from the oldest on, have no more than p_bytes of payload together.
create or replace function how_many_fit(p_locked locked_jobs, p_bytes bigint) returns int
language sql stable as $$
  select count(*) filter (where bytes <= p_bytes)
  from (
    select sum(payload_bytes(job.payload)) over (order by entry.seq) as bytes
    from unnest(p_locked.ids, p_locked.seqs) as entry(id, seq) join job using (id)
    where job.id = any(p_locked.ids)
      and job.id >= p_locked.ids[1] and job.id <= p_locked.ids[cardinality(p_locked.ids)]
  ) as added_up
$$;

-- Closes those of the locked jobs that have expired.
create or replace function bury_expired(p_lane int, p_ids uuid[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_ids uuid[];
begin
  with expired as (
    select id from job
    where id = any(p_ids) and id >= p_ids[1] and id <= p_ids[cardinality(p_ids)] and expiry_of(id, expires_at) <= p_now
  ),
  removed as (
    delete from ready where id = any(array(select id from expired)) returning id, attempt, abandonments
  ),
  buried as (
    insert into closed (id, status, reason, closed_at, lane, attempt, abandonments)
    select id, 'dead', 'expired', now(), p_lane, attempt, abandonments from removed
  ),
  booked as (
    insert into ledger (lane, pending, dead, expired)
    select p_lane, -count(*), count(*), count(*) from removed
  )
  select array_agg(id) into v_ids from removed;
  perform note_moves(v_ids, 'pending', 'dead');
end $$;
