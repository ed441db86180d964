-- flow_graph: the jobs of a flow as a graph shows them, in the order of the flow, without payloads and outputs: those of a page of
-- jobs may be many megabytes. p_after: the last id of the page before.
--
-- `blockers` are the jobs of the same flow that a job waits or waited for, at most p_limit; `outside` is how many others there
-- are. `failures` are the last 20 failed attempts, [started, failed] in milliseconds since 1970. `steps` are the first 20 durable
-- steps, as step_list has them, but without their values; those of the types of p_hidden are not read.
create or replace function flow_graph(p_id uuid, p_after uuid, p_limit int, p_hidden text[])
returns table (
  id uuid, type text, status text, attempts int, max_attempts smallint, created_at timestamptz, scheduled_at timestamptz,
  started_at timestamptz, ended_at timestamptz, dead_reason text, chain_id uuid, chain_index int, blockers uuid[], outside int,
  failures jsonb, steps jsonb
)
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_last_id uuid := (select last_id from flow where flow.id = p_id);
begin
  return query
    select page.id, found.type, found.status, found.attempts, found.max_attempts::smallint, found.created_at, found.scheduled_at,
           found.started_at, coalesce(found.completed_at, found.closed_at), found.dead_reason, found.chain_id, found.chain_index,
           waited.inside, coalesce(cardinality(dependency.blockers), 0) - waited.jobs, coalesce(failed.attempts, '[]'),
           stored.list
    from unnest(ids_of_flow(p_id, p_after, p_limit)) as page(id)
    cross join lateral (select * from jobs where jobs.id = page.id offset 0) as found
    left join dependency on dependency.id = page.id
    cross join lateral (
      select coalesce((array_agg(blocker))[1:p_limit], '{}') as inside, count(*)::int as jobs
      from unnest(dependency.blockers) as blocker where blocker > p_id and blocker <= v_last_id
    ) as waited
    cross join lateral (
      select jsonb_agg(jsonb_build_array(floor(extract(epoch from latest.started_at) * 1000),
                                         floor(extract(epoch from latest.failed_at) * 1000)) order by latest.failed_at) as attempts
      from (
        select failed_attempt.started_at, failed_attempt.failed_at
        from failed_attempt where failed_attempt.id = page.id order by failed_attempt.failed_at desc limit 20
      ) as latest
    ) as failed
    cross join lateral (
      select coalesce(jsonb_agg(jsonb_build_object('name', step.name, 'stored_at', date_part('epoch', step.stored_at) * 1000,
                                                   'took_ms', step.took_ms) order by step.stored_at nulls first, step.name), '[]') as list
      from (
        select checkpoint.name, checkpoint.stored_at, checkpoint.took_ms
        from checkpoint
        where checkpoint.id = page.id and found.type <> all(p_hidden)
        order by checkpoint.stored_at nulls first, checkpoint.name limit 20
      ) as step
    ) as stored
    order by page.id;
end $$;
