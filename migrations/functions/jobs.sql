-- jobs: a view with one row for each job, its state and its times. People use it with psql, and so does every look-up. A
-- job's state is the table that it is in. Each table is searched by id, and `lease` only if no other table has the job.

-- The errors of a job, oldest first, at most the last 100. Stacks and causes are only in the answer for a single job: for a
-- claim or a page of jobs they would be megabytes.
create or replace function errors_of(p_id uuid, p_is_detailed boolean default false) returns jsonb
language sql stable security definer
begin atomic
  select coalesce(jsonb_agg(jsonb_build_object('attempt', attempt, 'at', failed_at, 'message', message)
                            || case when p_is_detailed then jsonb_build_object('started_at', started_at, 'worker', worker)
                                                               || coalesce(detail, '{}')
                                    else '{}' end
                            order by failed_at), '[]')
  from (select * from failed_attempt where id = p_id order by failed_at desc limit 100) as latest;
end;

create or replace view jobs as
select job.id,
       lane.type,
       lane.queue,
       lane.priority,
       case when ready.id is not null or scheduled.id is not null then 'pending'
            when closed.id is not null then closed.status
            when blocked.id is not null then 'blocked'
            when done.finished_at is not null then 'completed'
            else 'processing' end as status,
       coalesce(ready.attempt, scheduled.attempt, closed.attempt, blocked.attempt, done.attempt, held.attempt, 0)::int as attempts,
       job.max_attempts,
       time_of_id(job.id) as created_at,
       coalesce(scheduled.run_at, job.scheduled_at, time_of_id(job.id)) as scheduled_at,
       coalesce(held.started_at, done.started_at, closed.started_at, latest.started_at) as started_at,
       done.finished_at as completed_at,
       closed.closed_at,
       expiry_of(job.id, job.expires_at) as expires_at,
       closed.reason as dead_reason,
       job.partition_key,
       job.tags,
       job.idempotency_key,
       job.traceparent,
       job.payload,
       output.output,
       errors_of(job.id) as errors,
       coalesce(held.worker, done.worker) as worker,
       held.deadline as lease_expires_at,
       job.fair_key,
       case when lane.kind = 'ordered' then bucket_of(key_of(lane.queue, 'ordered', job.partition_key)) end
         as partition_bucket,
       closed.culprit,
       job.flow as flow_id,
       case when job.chain_index is not null or exists (select from chain_job where chain_job.chain = job.id)
            then coalesce(job.chain, job.id) end as chain_id,
       coalesce(job.chain_index, 0) as chain_index,
       closed.superseded_by,
       job.schedule
from job
join lane using (lane)
left join ready on ready.id = job.id
left join scheduled on scheduled.id = job.id
left join closed on closed.id = job.id
left join blocked on blocked.id = job.id
left join output on output.id = job.id
left join lateral (
  select done.started_at, done.finished_at, done.worker,
         coalesce(done.attempts[array_position(done.ids, job.id)], 1) as attempt
  from done
  where done.hi_id >= job.id and done.hi_id <= end_of_bucket(job.id) and done.lo_id <= job.id
    and job.id = any(done.ids)
    and ready.id is null and scheduled.id is null and closed.id is null and blocked.id is null
  order by done.hi_id
  limit 1
) as done on true
left join lateral (
  select lease.started_at, lease.deadline, lease.worker,
         coalesce(lease.attempts[array_position(lease.ids, job.id)], 1) as attempt
  from lease
  where job.id = any(lease.ids)
    and lease.deadline > now() - interval '1 hour' -- a range of the index, not the whole table
    and ready.id is null and scheduled.id is null and closed.id is null and blocked.id is null
    and done.finished_at is null
  limit 1
) as held on true
left join lateral (
  select failed_attempt.started_at
  from failed_attempt
  where failed_attempt.id = job.id
  order by failed_at desc
  limit 1
) as latest on true;

create or replace function find_job(p_id uuid) returns setof jobs
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select * from jobs where id = p_id
$$;

-- What a change of one job answers: { applied, job }, with the job as it is now and the stacks and causes of its errors.
-- Null when there is no such job. Callers use it as their last statement: it has a snapshot of its own, younger than the
-- change, so it sees what the caller wrote.
create or replace function answer_with_job(p_id uuid, p_applied boolean) returns jsonb
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan -- the view takes longer to plan than to run
as $$
begin
  return (
    select jsonb_build_object('applied', p_applied,
                              'job', to_jsonb(jobs) || jsonb_build_object('errors', errors_of(id, true)))
    from jobs
    where id = p_id);
end $$;
