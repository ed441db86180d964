-- claim: a batch of due jobs, best priority first and then oldest, under a lease. One call, one round trip; what became
-- of the jobs before can come along and is settled first.
--
-- What is claimed is deleted from `ready` and packed into one lease for each lane (take.sql). Row locks that are
-- skipped keep two claimers apart. Pausing, limits and breakers choose lanes (choose.sql): a lane that is not chosen
-- costs nothing.
--
-- The answer is one value, since a row of a dozen columns for each job costs its reader more than all the rest:
--   { settled: [status, …] | null, key, is_probe, is_trial, has_more,
--     leases: [{ type, priority, expires_ms, attempts: […] | null, abandonments: […] | null, seqs: […],
--                jobs: [[id, payload, max_attempts, partition_key, traceparent, tags, errors], …] }, …] | null }

create or replace function claim(
  p_queue         text,
  p_types         text[], -- what the caller can run
  p_limit         int,
  p_lease_seconds float8,
  p_worker        text default null,
  p_max_bytes     bigint default 4194304, -- of payloads; the first job is claimed whatever its size
  p_limits        jsonb default null, -- { type: { concurrency?, rate?, seconds? } } of the limited types
  p_leases        jsonb default null, -- { type: seconds } where a type's lease is another one
  p_settle_ids         uuid[] default null, -- as in settle()
  p_settle_keys        uuid[] default null,
  p_settle_outcomes    jsonb default null,
  p_isolated           boolean default true -- the caller has nothing else in flight, and claims nothing while it has them
) returns json
language plpgsql
security definer
set search_path from current
set enable_seqscan = off -- whatever the statistics say, no queue is ever read from end to end,
set enable_bitmapscan = off -- nor a lane, to be sorted
set jit = off -- before PostgreSQL 18 the two make plans look expensive, and each would be compiled at every call
set plan_cache_mode = force_generic_plan -- planning takes longer than the work
as $$
declare
  c_tries         constant int := 50;
  v_cursors       cursors%rowtype; -- an old one is as good
  v_settled       text[];
  v_scheduled_cursor timestamptz;
  v_batch         claim_batch;
  v_level         lane_level; -- of the best priority that has work, then of the next
  v_below         smallint;
  v_some_alone    boolean;
  v_key           uuid;
  v_lease         lease;
begin
  perform need_read_committed();
  -- Cursors are moved by those who make them lag, once in about 400 claimed jobs, and by whoever finds that the clock has
  -- stepped back. It comes first: an advance does nothing in a transaction that has written.
  select * into v_cursors from cursors order by id desc limit 1;
  if p_limit * (pg_sequence_last_value('claim_count') - coalesce(v_cursors.claims, 0)) >= 400
     or clock_timestamp() < v_cursors.at then
    perform advance_cursors();
    if v_cursors.id % 12 = 0 then -- once in about 5,000 jobs
      perform fold_ledger(20000);
    end if;
    select * into v_cursors from cursors order by id desc limit 1; -- it may have gone back
  end if;
  if p_settle_ids is not null then
    v_settled := settle(p_settle_ids, p_settle_keys, p_settle_outcomes);
  end if;

  v_batch.at := clock_timestamp();
  v_batch.seconds := p_lease_seconds;
  v_batch.seconds_of_types := p_leases;
  v_batch.worker := p_worker;
  v_batch.jobs := 0;
  v_batch.bytes_left := p_max_bytes;
  v_batch.more := false;
  v_batch.is_probe := false;
  v_batch.some_expired := false;
  v_scheduled_cursor := coalesce(v_cursors.scheduled_cursor, '-infinity');
  if exists (select from scheduled where run_at >= v_scheduled_cursor and run_at <= v_batch.at) then
    perform promote_due(greatest(2 * p_limit, 100), v_scheduled_cursor, v_batch.at);
  end if;

  for n in 1 .. c_tries loop
    -- The next priority; or the same once more, if some of it had expired.
    if not v_batch.some_expired then
      v_below := v_level.priority;
    end if;
    v_batch.some_expired := false;
    v_level := next_level(p_queue, p_types, v_below, p_limits, v_cursors.cursor_seqs, p_isolated);
    exit when v_level.priority is null;
    continue when v_level.lanes is null; -- others were faster
    v_some_alone := true = any(v_level.is_alone);
    v_batch.more := v_batch.jobs = p_limit or v_some_alone and v_batch.jobs > 0;
    exit when v_batch.more;

    if v_some_alone then
      v_batch := take_alone(v_batch, v_level, p_limit, p_limits);
      exit when v_batch.jobs > 0;
      v_level := without_alone(v_level);
      continue when v_level.lanes is null;
    end if;
    v_batch := take_oldest(v_batch, v_level, p_limit - v_batch.jobs);
    continue when v_batch.some_expired;
    v_batch.more := v_batch.more or v_some_alone;
    -- What is left here comes before all of a lower priority; only where others hold it all does this one go on.
    exit when v_batch.more and v_batch.jobs > 0;
  end loop;
  v_batch.more := v_batch.more or v_batch.some_expired; -- maybe

  if v_batch.jobs > 0 then
    v_key := new_lease_key(); -- after all its rows were locked
    perform nextval('claim_count');
    foreach v_lease in array v_batch.leases loop
      insert into lease (key, deadline, started_at, lane, worker, ids, attempts, abandonments)
      values (v_key, v_lease.deadline, v_lease.started_at, v_lease.lane, v_lease.worker, v_lease.ids,
              v_lease.attempts, v_lease.abandonments);
    end loop;
    if p_limits is not null then
      perform count_claimed(p_limits, v_key);
    end if;
    if v_batch.trial_type is not null then
      perform note_trial(v_batch.trial_type, v_key, v_batch.leases[1].ids[1]);
    end if;
  end if;
  return json_build_object(
    'settled', v_settled, 'key', v_key, 'is_probe', v_batch.is_probe,
    'is_trial', v_batch.trial_type is not null, 'has_more', v_batch.more,
    'leases', v_batch.answers);
end $$;

-- What has become due moves from `scheduled` to the end of its lane, in bounded number, the longest due first.
create or replace function promote_due(p_limit int, p_low timestamptz, p_now timestamptz default clock_timestamp())
returns void
language sql as $$
  with due as materialized (
    select ctid as tid
    from scheduled
    where run_at >= coalesce(p_low, '-infinity') and run_at <= p_now
    order by run_at
    limit p_limit
    for update skip locked
  ),
  removed as (
    delete from scheduled where ctid = any(array(select tid from due)) returning run_at, id, lane, attempt, abandonments
  ),
  booked as (
    insert into ledger (lane, scheduled) select lane, -count(*) from removed group by lane
  )
  insert into ready (seq, id, lane, attempt, abandonments)
  select nextval('ready_seq'), id, lane, attempt, abandonments
  from (select * from removed order by run_at) as in_order;
$$;
