-- claim: takes a batch of due jobs, best priority first and then oldest, and puts them under a lease. It is one call and
-- one round trip. The outcomes of earlier jobs can come along and are settled first.
--
-- Read top down, a claim does this:
--   1. advance the cursors, when they lag (advance-cursors.sql)
--   2. settle the outcomes that came along (settle.sql)
--   3. promote: move jobs that have become due from `scheduled` to `ready`, and make the jobs of due slots (fire-slots.sql)
--   4. in a queue where jobs wait for others: release those whose wait is over (resolve-ends.sql)
--      in a queue with keys: find the jobs whose turn it is (dispatch.sql, take-turns.sql)
--   5. fill a batch, one priority after the other:
--      choose the lanes of the next priority that have work (choose.sql), then
--      take jobs that must not share a claim with others (take-alone.sql), or
--      take the oldest jobs of all other lanes (take.sql)
--   6. write one lease for each lane
--
-- Two claims never take the same job: each locks its rows of `ready`, skips what others have locked, and deletes the rows
-- in the transaction that writes the lease. Pausing, limits and breakers choose lanes and never filter rows, so a lane
-- that is not chosen costs nothing.
--
-- The answer is one JSON value, because a row of a dozen columns for each job costs its reader more than all the rest:
--   { settled: [status, …] | null, key, is_probe, is_trial, has_more, has_waits,
--     workers: [worker, …] | null,
--     stored: { now_ms, steps: { id: { name: value, … } | null, … } | null } | null, -- of types with steps (checkpoint.sql)
--     leases: [{ type, kind, priority, expires_ms, attempts: […] | null, abandonments: […] | null, seqs: […],
--                keys: [text, …] | null, blockers: { id: { slot: [{ job_id, status, output }, …] } } | null, -- null: none is linked
--                schedules: { id: { name, slot, missed } } | null,
--                jobs: [[id, payload, max_attempts, partition_key, traceparent, tags, errors, fair_key], …] }, …] | null }

-- A batch to fill. The only place that knows the order of claim_batch's fields. Inlined.
create or replace function new_batch(p_limit int, p_max_bytes bigint, p_ended_grants bigint[], p_owners int[]) returns claim_batch
language sql volatile
return row(clock_timestamp(), p_limit, p_max_bytes, false, null, false, false, null, null, null, false, null, null, false,
           null, null, null, null, null, p_ended_grants, null, p_limit, p_owners)::claim_batch;

create or replace function claim(
  p_queue           text,
  p_types           text[], -- what the caller can run
  p_limit           int,
  p_lease_seconds   float8,
  p_worker          text default null,
  p_max_bytes       bigint default 4194304, -- of payloads; the first job is claimed whatever its size
  p_limits          jsonb default null, -- { type: { concurrency?, rate?, seconds? } } of the limited types
  p_leases          jsonb default null, -- { type: seconds } of the types whose lease has another length
  p_settle_ids      uuid[] default null, -- these three as in settle()
  p_settle_keys     uuid[] default null,
  p_settle_outcomes jsonb default null,
  p_isolated        boolean default true, -- the caller runs nothing else, and claims nothing while it runs isolated jobs
  p_run             int default 1, -- the most consecutive jobs of one partition key; the caller works them in order
  p_buckets         int[] default null, -- only partition keys in these buckets of the ring; null: all
  p_policy          jsonb default null, -- what the deployment says about the queue's keys (key-policy.sql)
  p_registers       boolean default false, -- the caller is a drain: it becomes a worker on the ring, and its leases are short
  p_step_types      text[] default null, -- the types whose stored steps come along
  p_owners          int[] default null -- of each bucket, the number of the worker that owns it
) returns json
language plpgsql
security definer
set search_path from current
set enable_seqscan = off -- no table of the queue is ever read from end to end, whatever the statistics say
set enable_bitmapscan = off -- nor is a whole lane read and sorted
set jit = off -- before PostgreSQL 18 the two settings above make plans look expensive, so each call would compile them
set plan_cache_mode = force_generic_plan -- planning takes longer than the work
as $$
declare
  v_cursors cursors%rowtype;
  v_settled text[];
  v_ended   bigint[]; -- grants of the queue's turns
  v_batch   claim_batch;
  v_key     uuid;
  v_leases  json[];
  v_waits   boolean; -- some jobs of the queue wait for the ends of others
  v_keys    boolean; -- some have keys
begin
  if current_setting('transaction_isolation') <> 'read committed' then -- a call at every claim would cost more
    perform need_read_committed();
  end if;
  v_cursors := current_cursors(p_limit); -- first of all: an advance does nothing in a transaction that has written
  if p_settle_ids is not null then
    select * into v_settled, v_ended from settle_jobs(p_settle_ids, p_settle_keys, p_settle_outcomes, p_queue);
  end if;
  v_batch := new_batch(p_limit, p_max_bytes, v_ended, p_owners);
  if exists (select from scheduled where run_at >= v_cursors.scheduled_cursor and run_at <= v_batch.at) then
    perform promote_due(greatest(2 * p_limit, 100), v_cursors.scheduled_cursor, v_batch.at);
  end if;
  select bool_or(kind = 'ends'), bool_or(kind <> 'ends') into v_waits, v_keys from lane where queue = p_queue and kind <> 'plain';
  if v_waits or v_keys then
    v_batch := fill_linked_batch(v_batch, p_queue, p_types, p_limits, v_cursors.cursor_seqs, p_isolated, p_run, p_buckets,
                                 p_policy, v_waits, v_keys);
  else
    v_batch := fill_batch(v_batch, p_queue, p_types, p_limits, v_cursors.cursor_seqs, p_isolated);
  end if;
  if v_batch.taken is not null then
    v_key := new_lease_key(); -- after all rows were locked: see lease-key.sql
    v_cursors.claims := nextval('claim_count'); -- counts this claim; `perform` would cost a statement
    v_leases := write_leases(v_batch, p_queue, v_key, p_lease_seconds, p_leases, p_worker, p_registers);
    if p_limits is not null or v_batch.trial_type is not null then
      perform note_limited(v_batch, p_limits, v_key);
    end if;
  end if;
  return json_build_object(
    'settled', v_settled, 'key', v_key, 'is_probe', v_batch.is_probe, 'is_trial', v_batch.trial_type is not null,
    'has_more', v_batch.has_more, 'has_waits', v_waits, 'leases', v_leases,
    'stored', case when p_step_types is not null then stored_steps(v_batch, p_step_types) end,
    'workers', case when p_registers and v_batch.queue is not null then join_ring(v_batch, p_worker) end);
end $$;

-- What the durable steps of the jobs that were taken have returned, and the time. It has a snapshot of its own, younger than the
-- locks, so it sees all that earlier claims of these jobs have stored.
create or replace function stored_steps(p_batch claim_batch, p_types text[]) returns jsonb
language plpgsql as $$
declare
  c_bytes constant bigint := 262144;
begin
  return jsonb_build_object(
    'now_ms', date_part('epoch', clock_timestamp()) * 1000,
    'steps', steps_of(array(select unnest(ids) from unnest(p_batch.taken) where type = any(p_types)), c_bytes));
end $$;

-- Fills a batch from a queue whose jobs have keys, or wait for others, or both.
create or replace function fill_linked_batch(
  p_batch claim_batch, p_queue text, p_types text[], p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean, p_run int,
  p_buckets int[], p_policy jsonb, p_waits boolean, p_keys boolean
) returns claim_batch
language plpgsql as $$
declare
  c_tries constant int := 10;
  v_left  text := 'none'; -- events of waiting jobs
  v_waits int := 5;
begin
  if p_keys then
    p_batch.queue := p_queue;
    p_batch.buckets := p_buckets;
  end if;
  for try in 1 .. c_tries loop
    if p_waits then
      v_left := resolve_ends(p_queue, p_cursor_seqs);
    end if;
    if p_batch.queue is null then
      p_batch := fill_batch(p_batch, p_queue, p_types, p_limits, p_cursor_seqs, p_isolated);
    else
      p_batch := fill_batch_with_keys(p_batch, p_types, p_limits, p_cursor_seqs, p_isolated, p_run, p_policy);
    end if;
    exit when p_batch.taken is not null or v_left = 'none' or v_left = 'held' and v_waits = 0;
    if v_left = 'held' then -- an empty answer would only be asked for again
      perform pg_sleep(0.002);
      v_waits := v_waits - 1;
    end if;
  end loop;
  p_batch.has_more := p_batch.has_more or v_left <> 'none';
  if p_batch.ended_grants is not null then -- no dispatch has read them
    perform return_grant(p_queue, grant_id, null) from unnest(p_batch.ended_grants) as grant_id;
  end if;
  return p_batch;
end $$;

-- The cursors to read from. They are advanced by the claims that make them lag, once in about 400 claimed jobs, and by
-- a claim that finds that the clock has stepped back. Older cursors than the newest are right too: they stand further
-- to the left.
create or replace function current_cursors(p_limit int) returns cursors
language plpgsql as $$
declare
  c_lag        constant int := 400; -- jobs; a claim of 100 four times, or of 1 four hundred times
  c_fold_every constant int := 12; -- advances: the books are folded once in about 5,000 jobs
  c_fold_rows  constant int := 20000;
  v_cursors    cursors%rowtype;
  v_id         bigint;
begin
  select * into v_cursors from cursors order by id desc limit 1;
  if p_limit * (pg_sequence_last_value('claim_count') - coalesce(v_cursors.claims, 0)) >= c_lag
     or (clock_timestamp() < v_cursors.at) then
    perform advance_cursors();
    v_id := v_cursors.id;
    select * into v_cursors from cursors order by id desc limit 1; -- after a step of the clock they may have gone back
    if v_id % c_fold_every = 0 and v_cursors.id > v_id then -- several claims may try to advance, and one does
      perform fold_ledger(c_fold_rows);
    end if;
  end if;
  v_cursors.scheduled_cursor := coalesce(v_cursors.scheduled_cursor, '-infinity');
  return v_cursors;
end $$;

-- Takes jobs from the best priority downwards, until the batch is full or no priority with work is left.
create or replace function fill_batch(
  p_batch claim_batch, p_queue text, p_types text[], p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean
) returns claim_batch
language plpgsql as $$
declare
  c_turns      constant int := 50; -- ten priorities, and as often as expired jobs were in the way
  v_below      smallint; -- the next turn looks at priorities below this one; null: at all
  v_level      lane_level;
  v_some_alone boolean; -- some jobs of this priority must not share a claim (take-alone.sql)
begin
  for turn in 1 .. c_turns loop
    v_level := next_level(p_queue, p_types, v_below, p_limits, p_cursor_seqs, p_isolated, p_batch.has_keys);
    if v_level.priority is null then
      return p_batch;
    end if;
    v_some_alone := true = any(v_level.needs_quota) or (0 < any(v_level.group_sizes));
    if v_level.lanes is null then
      null; -- other claims were faster
    elsif p_batch.jobs_left = 0 or (v_some_alone and p_batch.taken is not null) then
      p_batch.has_more := true;
    elsif v_some_alone then
      p_batch := take_alone_or_shared(p_batch, v_level, p_queue, p_limits);
    else
      p_batch := take_oldest(p_batch, v_level);
    end if;

    if p_batch.some_expired then
      -- The choice was made by jobs that are gone now. v_below stays: the next turn looks at the same priority again.
      p_batch.some_expired := false;
      p_batch.has_more := false;
    elsif p_batch.has_more then
      return p_batch; -- what is left of this priority comes before everything of a lower one
    else
      v_below := v_level.priority; -- nothing is left of it, or other claims hold all the rest
    end if;
  end loop;
  p_batch.has_more := true; -- the turns are used up, so nobody knows
  return p_batch;
end $$;

-- Returns the leases as the answer has them. `linked` is true if a job is linked, and false if some job may be waited for: its queue has
-- a lane of ends. This is read after the jobs' rows were locked (judge-edges.sql says why).
create or replace function write_leases(
  p_batch claim_batch, p_queue text, p_key uuid, p_seconds float8, p_seconds_of_types jsonb, p_worker text, p_is_drain boolean
) returns json[]
language plpgsql as $$
declare
  c_ordered_seconds constant float8 := 90; -- a key whose drain has died does not wait longer
  v_taken    taken_jobs;
  v_seconds  float8;
  v_deadline timestamptz;
  v_leases   json[];
begin
  foreach v_taken in array p_batch.taken loop
    v_seconds := coalesce((p_seconds_of_types ->> v_taken.type)::float8, p_seconds);
    if p_is_drain and v_taken.kind = 'ordered' then
      v_seconds := least(v_seconds, c_ordered_seconds);
    end if;
    v_deadline := p_batch.at + make_interval(secs => v_seconds);
    insert into lease (key, deadline, started_at, lane, worker, ids, attempts, abandonments, keys, places, grant_id, apart, linked)
    values (p_key, v_deadline, now(), v_taken.lane, p_worker, v_taken.ids, v_taken.attempts, v_taken.abandonments,
            v_taken.keys, v_taken.places, v_taken.grant_id, v_taken.apart,
            coalesce(v_taken.linked, (select false from lane where queue = p_queue and kind = 'ends' limit 1)));
    v_leases := v_leases || json_build_object(
      'type', v_taken.type, 'kind', v_taken.kind, 'priority', v_taken.priority,
      'expires_ms', date_part('epoch', v_deadline) * 1000, 'attempts', v_taken.attempts,
      'abandonments', v_taken.abandonments, 'seqs', v_taken.seqs, 'keys', v_taken.keys::text[],
      'blockers', v_taken.blockers, 'schedules', v_taken.schedules, 'jobs', v_taken.jobs);
  end loop;
  return v_leases;
end $$;

-- Moves jobs that have become due from `scheduled` to the end of their lanes, at most p_limit, the longest due first. Slots of
-- schedules become jobs. The lock on the row of `scheduled` lets one claim have it.
create or replace function promote_due(p_limit int, p_low timestamptz, p_now timestamptz default clock_timestamp())
returns void
language sql as $$
  with due as materialized (
    select ctid as tid
    from scheduled
    where run_at >= coalesce(p_low, '-infinity') and run_at <= p_now and (place is distinct from -1 or may_fire(id))
    order by run_at
    limit p_limit
    for update skip locked
  ),
  removed as (
    delete from scheduled where ctid = any(array(select tid from due))
    returning run_at, id, lane, attempt, abandonments, key, place
  ),
  booked as (
    insert into ledger (lane, scheduled)
    select abs(lane), -count(*) from removed
    where place is null or place > 0 -- 0: a time-out, -1: a slot
    group by abs(lane)
  ),
  moved as (
    insert into ready (seq, id, lane, attempt, abandonments, key, place)
    select nextval('ready_seq'), id, lane, attempt, abandonments, key, place
    from (select * from removed where place is distinct from -1 order by run_at, id) as in_order
  )
  select fire_slots(array_agg(id), p_now) from removed where place = -1 having count(*) > 0;
$$;
