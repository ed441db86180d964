-- debounce and throttle: calls with one key that come close together make one job. A key belongs to a queue and a type.
--
-- A call locks its keys until its transaction ends. So calls with one key come one after the other, and each sees what the one
-- before has committed. Who waits for whom:
--   A call waits for another transaction that has used the key, and for a claim that is just taking the key's job: one
--   statement. A claim waits for nobody: it passes over the job of a call that has not ended. So a job that was kept or got
--   one more payload does not start before the transaction of that call has ended.
--   No deadlock: a call locks its keys in the order of their hashes, after its idempotency keys. The rows of a key's job come
--   after that, and besides the owner of the key only those lock them who hold no key. A transaction with several calls has to use
--   its keys in one order, as with idempotency keys.
-- With REPEATABLE READ a call that would not see the newest state fails with 40001: whoever changes the state deletes or updates a
-- row that the call locks.

create or replace function debounce_hash_of(job new_job) returns uuid
language plpgsql immutable as $$
begin
  return key_hash_of(case when job.debounce is not null then 'debounce' else 'throttle' end || chr(1)
                     || coalesce(job.queue, 'default') || chr(1) || job.type || chr(1)
                     || coalesce(job.debounce ->> 'key', job.throttle ->> 'key'));
end $$;

-- Locks the keys of new jobs. A key that is new to two transactions: the unique index makes the second one wait in its insert. A
-- key that is there is locked and not written: the condition is never true. Returns the time after the wait.
create or replace function lock_debounce_keys(p_jobs new_job[], p_except bigint[], p_is_allowed boolean) returns timestamptz
language plpgsql as $$
begin
  if not p_is_allowed then
    perform refuse('debounce: a job of a flow, or one that comes next, has neither debounce nor throttle');
  end if;
  insert into debounce_key as known (hash, expires_at)
  select hash, now() + interval '1 hour'
  from (
    select distinct debounce_hash_of(job) as hash
    from (select job, row_number() over () as place from unnest(p_jobs) as job) as listed
    where ((job).debounce is not null or (job).throttle is not null) and place <> all(p_except)
  ) as keyed
  order by hash -- all calls lock in this order, so they cannot deadlock
  on conflict (hash) do update set expires_at = excluded.expires_at where known.expires_at is null;
  return clock_timestamp();
end $$;

-- The places of an array that have a value.
create or replace function places_of(p_ids uuid[]) returns int[]
language sql immutable
return array(select place from generate_subscripts(p_ids, 1) as place where p_ids[place] is not null);

-- Decides what becomes of each new job that has a key. The keys are locked.
create or replace function bind_jobs(p_jobs new_job[], p_except bigint[], p_stem text, p_now timestamptz) returns bound_jobs
language plpgsql as $$
declare
  v_bound bound_jobs;
  v_key   record;
  v_old   debounce_state;
  v_new   debounce_state;
  v_both  record; -- v_bound and v_new
  v_place bigint;
begin
  v_bound.jobs := p_jobs;
  for v_key in
    select debounce_hash_of(job) as hash, (job).throttle is not null as is_throttle, array_agg(place order by place) as places
    from (select job, row_number() over () as place from unnest(p_jobs) as job) as listed
    where ((job).debounce is not null or (job).throttle is not null) and place <> all(p_except)
    group by 1, 2 order by 1
  loop
    -- A statement of its own after the lock of the key: its snapshot sees what the last owner of the key has committed.
    select * into v_old from debounce_state where hash = v_key.hash order by version desc limit 1 for update;
    if v_key.is_throttle then
      v_both := bind_throttled(v_bound, v_old, v_key.places, p_stem, p_now);
    else
      v_both := bind_debounced(v_bound, v_old, v_key.places, p_stem, p_now);
    end if;
    v_bound := v_both.bound;
    v_new := v_both.state;
    if v_new is distinct from v_old then
      delete from debounce_state where hash = v_key.hash and version = v_old.version;
      insert into debounce_state (hash, id, since, is_list, until)
      values (v_key.hash, v_new.id, v_new.since, v_new.is_list, v_new.until);
    end if;
    foreach v_place in array v_key.places loop
      if v_bound.bound_ids[v_place] is not null and p_jobs[v_place].idempotency_key is not null then
        update idempotency set id = v_bound.bound_ids[v_place]
        where key_hash = key_hash_of(p_jobs[v_place].idempotency_key);
      end if;
    end loop;
  end loop;
  return v_bound;
end $$;

-- The first job of a window is made. Others are not, whatever has become of it.
create or replace function bind_throttled(
  inout bound bound_jobs, inout state debounce_state, p_places bigint[], p_stem text, p_now timestamptz
)
language plpgsql as $$
declare
  v_place bigint;
begin
  foreach v_place in array p_places loop
    -- After the clock has stepped back, a window that began ahead of it is over.
    if state.until > p_now and state.since <= p_now + interval '1 second' then
      bound.outcomes[v_place] := 'throttled';
      bound.bound_ids[v_place] := state.id;
    else
      bound.outcomes[v_place] := 'created';
      state.id := numbered_id(p_stem, v_place);
      state.since := p_now;
      state.is_list := false;
      state.until := p_now + make_interval(secs => (bound.jobs[v_place].throttle -> 'seconds')::float8);
    end if;
  end loop;
end $$;

create or replace function bind_debounced(
  inout bound bound_jobs, inout state debounce_state, p_places bigint[], p_stem text, p_now timestamptz
)
language plpgsql as $$
declare
  v_waits boolean := lock_waiting(state.id); -- the job of the key
  v_own   bigint; -- its place, if this call makes it
  v_place bigint;
  v_job   new_job;
  v_mode  text;
  v_both  record; -- bound and v_waits
begin
  foreach v_place in array p_places loop
    v_job := bound.jobs[v_place];
    v_mode := v_job.debounce ->> 'mode';
    if v_waits and v_mode = 'merge' then
      v_both := merge_job(bound, state, v_own, v_place, p_now);
      bound := v_both.bound;
      v_waits := v_both.fits; -- otherwise its list is full
    end if;
    if v_waits and v_mode <> 'last' then
      bound.outcomes[v_place] := case v_mode when 'first' then 'kept' else 'merged' end;
      bound.bound_ids[v_place] := state.id;
      state.is_list := state.is_list or v_mode = 'merge';
    else
      bound.outcomes[v_place] := case when v_waits then 'replaced' else 'created' end;
      bound.replaced_ids[v_place] := case when v_waits then state.id end;
      state.since := case when v_waits then state.since else p_now end;
      state.id := numbered_id(p_stem, v_place);
      state.is_list := v_mode = 'merge';
      bound.jobs[v_place] := first_of_key(v_job, state.since, p_now);
      v_own := v_place;
      v_waits := true;
    end if;
  end loop;
end $$;

-- A job that is made under a key of a debounce: when it is due, and a list for its payload if others are to be merged.
create or replace function first_of_key(p_job new_job, p_since timestamptz, p_now timestamptz) returns new_job
language plpgsql as $$
declare
  v_fault text;
begin
  p_job.scheduled_at := least(p_now + make_interval(secs => (p_job.debounce -> 'seconds')::float8),
                              p_since + make_interval(secs => (p_job.debounce ->> 'max_wait_seconds')::float8));
  if p_job.debounce ->> 'mode' = 'merge' then
    p_job.payload := jsonb_build_object('items', jsonb_build_array(coalesce(p_job.payload, '{}')));
    v_fault := payload_fault_of(p_job.payload);
    if v_fault is not null then
      perform refuse(v_fault || ', with the list around it');
    elsif (p_job.debounce ->> 'max_items')::int = 1 then
      p_job.scheduled_at := null;
    end if;
  end if;
  return p_job;
end $$;

-- Adds a payload to the list of the waiting job, unless that has max_items already or would get too large. A job whose list is
-- full is due at once.
create or replace function merge_job(
  inout bound bound_jobs, p_state debounce_state, p_own bigint, p_place bigint, p_now timestamptz, out fits boolean
)
language plpgsql as $$
declare
  c_most_items constant int := 100; -- unless the call says another number
  v_job        new_job := bound.jobs[p_place];
  v_most       int := coalesce((v_job.debounce ->> 'max_items')::int, c_most_items);
  v_payload    jsonb := case when p_own is null then (select payload from job where id = p_state.id)
                             else bound.jobs[p_own].payload end;
  v_items      jsonb := case when p_state.is_list then v_payload -> 'items' else jsonb_build_array(v_payload) end;
begin
  v_payload := jsonb_build_object('items', v_items || jsonb_build_array(coalesce(v_job.payload, '{}')));
  fits := jsonb_array_length(v_items) < v_most and payload_fault_of(v_payload) is null;
  if fits and p_own is null then
    update job set payload = v_payload where id = p_state.id; -- its row in `scheduled` or `ready` is locked: no claim reads it
  elsif fits then
    bound.jobs[p_own].payload := v_payload;
  end if;
  if fits and jsonb_array_length(v_items) + 1 < v_most then
    return;
  elsif p_own is null then
    perform make_due(p_state.id, p_now);
  else
    bound.jobs[p_own].scheduled_at := null;
  end if;
end $$;

-- Locks the row of a job if it waits for its first run. It waits for a claim that is taking the job: if the claim is rolled back,
-- the job still waits. `scheduled` comes first, and there are three looks, for the same reasons as in a cancel (cancel.sql).
--
-- A job that has run is not bound, although it may be pending again. A retry has used an attempt; a snooze has another time than
-- the job was made with. Only a job that waits for the rate of its fair key has another time too (shares.sql).
create or replace function lock_waiting(p_id uuid) returns boolean
language plpgsql as $$
begin
  if p_id is null or exists (select from failed_attempt where id = p_id) or exists (select from checkpoint where id = p_id) then
    return false;
  end if;
  for look in 1 .. 3 loop
    perform from scheduled join job using (id)
    where scheduled.id = p_id and attempt = 0 and abandonments = 0
      and (run_at = scheduled_at or fair_key is not null and place is not null)
    for update of scheduled;
    if found then
      return true;
    end if;
    perform from ready where id = p_id and attempt = 0 and abandonments = 0 for update;
    if found then
      return true;
    end if;
  end loop;
  return false;
end $$;

-- A scheduled job becomes due now. The caller has locked its row.
create or replace function make_due(p_id uuid, p_now timestamptz) returns void
language plpgsql as $$
begin
  with removed as (
    delete from scheduled where id = p_id returning id, lane, attempt, abandonments, key, place
  ),
  booked as (
    insert into ledger (lane, scheduled) select abs(lane), -1 from removed
  ),
  readied as (
    insert into ready (seq, id, lane, attempt, abandonments, key, place)
    select nextval('ready_seq'), id, lane, attempt, abandonments, key, place from removed
    returning id
  )
  update job set scheduled_at = p_now where id = (select id from readied);
end $$;

-- Closes the jobs that new ones replace. Their rows are locked, or were written by this transaction.
create or replace function supersede(p_bound bound_jobs, p_stem text) returns void
language plpgsql as $$
declare
  v_old uuid[];
  v_new uuid[];
begin
  select array_agg(p_bound.replaced_ids[place]), array_agg(numbered_id(p_stem, place)) into v_old, v_new
  from unnest(places_of(p_bound.replaced_ids)) as place;
  if v_old is not null then
    perform cancel_pending(v_old, v_new);
  end if;
end $$;

-- Forgets keys that nobody needs any more: their job does not wait, and their throttle is over. A key that a call has locked is
-- left out. The state is read after the lock, so it is the newest. A key that is needed is looked at again later. Returns how many
-- it has looked at: as many as p_limit mean that there are more.
create or replace function prune_debounce(p_limit int) returns int
language plpgsql as $$
declare
  v_hashes uuid[] := array(
    select hash from debounce_key where expires_at <= now() order by expires_at limit p_limit for update skip locked);
begin
  update debounce_key
  set expires_at = greatest(now() + interval '1 hour', used.until)
  from (
    select hash, max(until) as until
    from debounce_state
    where hash = any(v_hashes)
      and (until > now() or (select true from ready where ready.id = debounce_state.id)
           or (select true from scheduled where scheduled.id = debounce_state.id))
    group by hash
  ) as used
  where debounce_key.hash = used.hash;
  delete from debounce_state
  where hash = any(array(select hash from debounce_key where hash = any(v_hashes) and expires_at <= now()));
  delete from debounce_key where hash = any(v_hashes) and expires_at <= now();
  return cardinality(v_hashes);
end $$;
