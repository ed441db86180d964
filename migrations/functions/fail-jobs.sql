-- fail jobs: where jobs go that have left their leases and did not complete. Called by settle and by the reaper.

-- Applies every outcome but completion: the job goes back to `ready` or `scheduled`, or is closed for good. Answers with the
-- jobs that are dead now, and with those that are cancelled because somebody asked for it while they ran (cancel.sql).
create or replace function fail_jobs(
  p_jobs settled_job[], p_last_reason text default 'exhausted', out dead uuid[], out cancelled uuid[]
)
language plpgsql as $$
declare
  v_earliest timestamptz; -- run_at
  v_moves    job_move[];
begin
  dead := '{}';
  cancelled := '{}';
  if cardinality(p_jobs) = 0 then
    return;
  end if;
  v_moves := judge_jobs(p_jobs, p_last_reason);
  with move as materialized (
    -- A job that cannot keep its key's turn waits for it and is suspended when it runs again.
    select *, outcome = 'suspend' and seq is null as is_suspended from unnest(v_moves)
  ),
  buried as (
    insert into closed (id, status, reason, closed_at, started_at, lane, attempt, abandonments, key, place, fingerprint)
    select id, case when reason = 'cancelled' then reason else 'dead' end, nullif(reason, 'cancelled'), now(), started_at,
           abs(lane), attempt, abandonments, key, place, case when reason <> 'cancelled' then error_fingerprint(message) end
    from move where reason is not null
  ),
  forgotten as (
    delete from cancel_request where id = any(array(select id from move where reason = 'cancelled'))
  ),
  postponed as (
    insert into scheduled (run_at, id, lane, attempt, abandonments, key, place)
    select clock_timestamp() + make_interval(secs => seconds), id, lane, attempt, abandonments, key, place
    from move where reason is null and seconds > 0 and not is_suspended
    returning run_at
  ),
  readied as (
    insert into ready (seq, id, lane, attempt, abandonments, key, place)
    select coalesce(seq, nextval('ready_seq')), id, lane, attempt, abandonments, key, place
    from move where reason is null and seconds <= 0 and not is_suspended
  ),
  remembered as (
    insert into failed_attempt (id, attempt, started_at, failed_at, message, detail, worker)
    select id, attempt, started_at, now(), coalesce(message, ''), detail, worker
    from move where outcome in ('retry', 'bury')
  ),
  booked as (
    insert into ledger (lane, leased, pending, scheduled, blocked, failed, dead, cancelled)
    select abs(lane), -count(*), nullif(count(*) filter (where reason is null and not is_suspended), 0),
           nullif(count(*) filter (where reason is null and seconds > 0 and not is_suspended), 0),
           nullif(count(*) filter (where is_suspended), 0),
           nullif(count(*) filter (where outcome in ('retry', 'bury')), 0),
           nullif(count(*) filter (where reason <> 'cancelled'), 0),
           nullif(count(*) filter (where reason = 'cancelled'), 0)
    from move group by abs(lane)
  )
  select coalesce(array_agg(id) filter (where reason <> 'cancelled'), '{}'),
         coalesce(array_agg(id) filter (where reason = 'cancelled'), '{}'), (select min(run_at) from postponed)
  into dead, cancelled, v_earliest
  from move where reason is not null;
  perform keep_reachable(v_earliest);
  perform return_turns(queue, array_agg(returned[1]), array_agg(returned[2]))
  from unnest(v_moves)
  where returned is not null
  group by queue;
  perform note_failed(p_jobs, v_moves, dead, cancelled);
end $$;

-- What the moves mean for those that wait for the jobs, and for suspended jobs.
create or replace function note_failed(
  p_jobs settled_job[], p_moves job_move[], p_dead uuid[], p_cancelled uuid[]
) returns void
language plpgsql as $$
begin
  if exists (select from unnest(p_jobs) where linked is not null) then
    perform note_moves(p_dead, 'processing', 'dead');
    perform note_moves(p_cancelled, 'processing', 'cancelled');
    perform note_moves(array(select id from unnest(p_moves) where reason is null and not (outcome = 'suspend' and seq is null)),
                       'processing', 'pending');
  end if;
  if exists (select from unnest(p_moves) where outcome = 'suspend' and seq is null) then
    perform add_waits(p_moves);
  end if;
end $$;

-- Where each job that did not complete goes, and which turns go back.
--   no key            to its lane, with its delay
--   ordered           the first of the key that runs again keeps the turn, and so does the first that dies where dead jobs
--                     block; all others wait again, each at the place that it had
--   fair              it waits again like a new job, after its delay, and its turn goes back
-- A job of a run of which earlier ones are still leased (not is_last) cannot keep the turn. If it would be dead and block the
-- key, it waits instead and runs once more at its place: the key must not be blocked before its turn, and not pass it either.
-- A job that somebody asked to stop is cancelled, whatever its outcome is, and keeps no turn. The caller has locked its lease,
-- so no request can come now (cancel.sql).
create or replace function judge_jobs(p_jobs settled_job[], p_last_reason text) returns job_move[]
language plpgsql as $$
declare
  v_ids     uuid[] := array(select id from unnest(p_jobs) order by 1);
  v_stopped uuid[] := array(select id from cancel_request where id = any(v_ids));
  v_moves   job_move[];
begin
  with line as materialized (
    select lane, queue, kind, kind = 'ordered' and (key_policy_of(queue)).blocks as blocks
    from lane where lane = any(array(select distinct lane from unnest(p_jobs)))
  ),
  judged as materialized (
    select failed.*, line.queue, line.kind, line.blocks,
           failed.id = any(v_stopped) as is_cancelled,
           case when failed.id = any(v_stopped) then 'cancelled'
                when line.blocks and not failed.is_last then null
                when failed.outcome = 'bury' then 'fatal'
                when failed.outcome = 'retry' and failed.attempt >= job.max_attempts then p_last_reason
           end as reason,
           -- A snooze, a release and a withdrawal give the attempt back. A reconciled job's look after its last run is one
           -- claim more than the maximum.
           least(failed.attempt - case when failed.outcome in ('snooze', 'release', 'withdraw', 'suspend') then 1 else 0 end,
                 job.max_attempts - (line.blocks and not failed.is_last)::int) as used
    from unnest(p_jobs) as failed
    join job on job.id = failed.id
      and job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)]
    join line on line.lane = failed.lane
  ),
  holder as materialized (
    select distinct on (key) key, id
    from judged
    where kind = 'ordered' and is_last and outcome <> 'withdraw' and not is_cancelled
      and (reason is null or blocks)
    order by key, place
  ),
  placed as (
    select *, row_number() over (partition by key, is_free order by place) as number -- its turn goes back once
    from (
      select judged.*, holder.id is not null as holds,
             is_last and outcome <> 'withdraw' and judged.key <> all(array(select holder.key from holder)) as is_free
      from judged left join holder using (id)
    ) as held
  )
  select array_agg(row(id, case when kind = 'plain' or holds then lane else -lane end, used, abandonments, started_at,
                       case when is_cancelled and outcome = 'suspend' then 'release' else outcome end, reason, message, detail,
                       case when kind = 'ordered' and key is not null and not holds then 0 else seconds end,
                       case when kind = 'ordered' and not holds then place end,
                       case when reason is null or holds then key end,
                       case when holds then place end, queue,
                       case when kind = 'fair' then array[key, 0]
                            when key is not null and is_free and number = 1 then array[key, place] end,
                       more, worker)::job_move)
  into v_moves
  from placed;
  return v_moves;
end $$;
