-- take: moves the oldest jobs of some lanes from `ready` into leases of a batch, one for each lane.

create or replace function take_oldest(p_batch claim_batch, p_level lane_level, p_limit int) returns claim_batch
language plpgsql as $$
declare
  c_all   constant bigint := 9223372036854775807;
  v_until int := p_batch.jobs + p_limit;
  v_reach bigint;
  v_last  bigint := p_level.oldest_seqs[1]; -- of as many as wanted
  v_seen  int := 1;
begin
  if cardinality(p_level.lanes) > 1 then
    -- Several types at once: first see without locks how far they go. Most often they lie close together.
    if p_limit > 1 then
      foreach v_reach in array array[v_last + 2 * p_limit, v_last + 16 * p_limit, c_all] loop
        select max(seq), count(*) into v_last, v_seen
        from (
          select ahead.seq
          from unnest(p_level.lanes, p_level.oldest_seqs) as lanes(lane, head)
          cross join lateral (
            select seq
            from ready
            where ready.lane = lanes.lane and seq >= lanes.head and seq < v_reach
            order by seq
            limit p_limit
          ) as ahead
          order by ahead.seq
          limit p_limit
        ) as wanted;
        exit when v_seen = p_limit;
      end loop;
    end if;
    for n in 1 .. cardinality(p_level.lanes) loop
      exit when p_level.oldest_seqs[n] > v_last or p_batch.jobs = v_until or p_batch.more;
      p_batch := take_lane(p_batch, p_level, n, v_last, v_until - p_batch.jobs);
    end loop;
    if p_batch.jobs + p_limit > v_until or p_batch.more then
      p_batch.more := p_batch.more or v_seen = p_limit and (
        v_last < p_level.oldest_seqs[cardinality(p_level.oldest_seqs)]
        or exists (
          select
          from unnest(p_level.lanes) as lanes(lane)
          cross join lateral (
            select from ready where ready.lane = lanes.lane and seq > v_last order by seq limit 1
          ) as next));
      return p_batch;
    end if;
  end if;

  -- One lane; or others were faster: then whatever comes next in the lanes, the one with the oldest job first.
  for n in 1 .. cardinality(p_level.lanes) loop
    p_batch := take_lane(p_batch, p_level, n, c_all, v_until - p_batch.jobs);
    if p_batch.jobs = v_until then
      p_batch.more := p_batch.more
        or exists (select from ready where lane = p_level.lanes[n] and seq > p_batch.last_seq order by seq limit 1);
    end if;
    exit when p_batch.jobs = v_until or p_batch.more;
  end loop;
  return p_batch;
end $$;

-- The oldest jobs of one lane, the level's nth. A locked row keeps its place, so its tid still names it in the
-- statement that removes it. None is locked only to see that there is more: another claim would pass it over for a
-- worse one.
create or replace function take_lane(p_batch claim_batch, p_level lane_level, n int, p_last bigint, p_limit int)
returns claim_batch
language plpgsql as $$
declare
  v_lane         int := p_level.lanes[n];
  v_head         bigint := p_level.oldest_seqs[n];
  v_is_thorough  boolean := p_limit < 50 or cardinality(p_level.lanes) > 1;
  v_tids         tid[];
  v_ids          uuid[]; -- sorted, as all that follow
  v_seqs         bigint[];
  v_attempt      smallint; -- the most of any
  v_most_abandonments       smallint;
  v_attempts     smallint[];
  v_abandonments      smallint[];
  v_retried      uuid[] := '{}';
  v_jobs         json;
  v_bytes        bigint;
  v_some_expired boolean;
  v_waited       real[];
  v_deadline     timestamptz;
begin
  loop
    -- To find that a row is locked costs more than to lock one. A row that others have at hand bears their mark in
    -- xmax, so a large claim from one lane passes over those that are marked. But so is what they let go again: that
    -- is seen when it has become the oldest, or when there is not enough without it.
    loop
      select array_agg(tid), array_agg(id order by id), array_agg(seq order by id), max(attempt), max(abandonments), max(seq)
      into v_tids, v_ids, v_seqs, v_attempt, v_most_abandonments, p_batch.last_seq
      from (
        select ctid as tid, seq, id, attempt, abandonments
        from ready
        where lane = v_lane and seq >= v_head and seq <= p_last and (v_is_thorough or xmax = 0)
        order by seq
        limit p_limit
        for update skip locked
      ) as locked;
      exit when v_is_thorough;
      if cardinality(v_ids) = p_limit then
        exit when v_head = any(v_seqs);
        perform from ready where lane = v_lane and seq = v_head for update skip locked;
        exit when not found;
      end if;
      v_is_thorough := true;
    end loop;
    if v_ids is null then
      return p_batch;
    end if;
    if v_attempt > 0 or v_most_abandonments > 0 then
      select case when v_attempt > 0 then array_agg((attempt + 1)::smallint order by id) end,
             case when v_most_abandonments > 0 then array_agg(abandonments order by id) end,
             coalesce(array_agg(id) filter (where attempt > 0), '{}')
      into v_attempts, v_abandonments, v_retried
      from ready where ctid = any(v_tids);
    end if;

    select json_agg(json_build_array(id, payload, max_attempts, partition_key, traceparent, tags,
                                     case when id = any(v_retried) then errors_of(id) end) order by id),
           sum(payload_bytes(payload)),
           bool_or(expiry_of(id, expires_at) <= p_batch.at),
           array_agg(date_part('epoch', p_batch.at - coalesce(scheduled_at, time_of_id(id)))::real)
             filter (where id <> all(v_retried))
    into v_jobs, v_bytes, v_some_expired, v_waited
    from job
    where id = any(v_ids) and id >= v_ids[1] and id <= v_ids[cardinality(v_ids)];
    if v_some_expired then
      perform bury_expired(v_lane, v_ids, p_batch.at);
      p_batch.some_expired := true; -- the lane is looked at once more
      return p_batch;
    end if;
    exit when v_bytes <= p_batch.bytes_left or p_batch.jobs = 0 and cardinality(v_ids) = 1;

    -- Too large for one answer: what fits, and the others stay where they are.
    p_batch.more := true;
    p_limit := how_many_fit(v_ids, v_seqs, p_batch.bytes_left);
    if p_batch.jobs = 0 then
      p_limit := greatest(p_limit, 1);
    end if;
    if p_limit = 0 then
      return p_batch;
    end if;
    v_attempts := null;
    v_abandonments := null;
    v_retried := '{}';
  end loop;

  v_deadline := p_batch.at + make_interval(
    secs => coalesce((p_batch.seconds_of_types ->> p_level.types[n])::float8, p_batch.seconds));
  delete from ready where ctid = any(v_tids);
  insert into ledger (lane, pending, leased, waiting_seconds)
  values (v_lane, -cardinality(v_ids), cardinality(v_ids), v_waited);

  p_batch.jobs := p_batch.jobs + cardinality(v_ids);
  p_batch.bytes_left := p_batch.bytes_left - v_bytes;
  p_batch.leases := p_batch.leases
    || row(null, null, v_deadline, now(), v_lane, p_batch.worker, v_ids, v_attempts, v_abandonments)::lease;
  p_batch.answers := p_batch.answers || json_build_object(
    'type', p_level.types[n], 'priority', p_level.priority, 'expires_ms', date_part('epoch', v_deadline) * 1000,
    'attempts', v_attempts, 'abandonments', v_abandonments, 'seqs', v_seqs, 'jobs', v_jobs);
  return p_batch;
end $$;

-- Of these jobs, from the oldest on, whose payloads have so many bytes together.
create or replace function how_many_fit(p_ids uuid[], p_seqs bigint[], p_bytes bigint) returns int
language sql stable as $$
  select count(*) filter (where bytes <= p_bytes)
  from (
    select sum(payload_bytes(job.payload)) over (order by entry.seq) as bytes
    from unnest(p_ids, p_seqs) as entry(id, seq) join job using (id)
    where job.id = any(p_ids) and job.id >= p_ids[1] and job.id <= p_ids[cardinality(p_ids)]
  ) as added_up
$$;

create or replace function bury_expired(p_lane int, p_ids uuid[], p_now timestamptz) returns void
language sql as $$
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
  )
  insert into ledger (lane, pending, dead, expired)
  select p_lane, -count(*), count(*), count(*) from removed;
$$;
