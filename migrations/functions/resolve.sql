-- resolve: completes a pending or blocked job from outside, without a worker. Answers as answer_with_job does; `applied` is false
-- when the job is neither. `p_types` as in cancel.
--
-- A resolve and a claim of the same job both delete its row in `ready`. Only one of them can delete it.
create or replace function resolve(p_id uuid, p_output jsonb default null, p_types text[] default null) returns jsonb
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_type    text := (select lane.type from job join lane using (lane) where job.id = p_id);
  v_pending record;
begin
  if v_type is null or v_type <> all(p_types) then
    return null;
  elsif v_type like 'sluice.%' then
    return answer_with_job(p_id, false);
  end if;
  for look in 1 .. 2 loop -- as in cancel
    delete from scheduled where id = p_id returning lane, attempt, abandonments, key, place, -1 as scheduled into v_pending;
    exit when found;
    delete from ready where id = p_id returning lane, attempt, abandonments, key, place, 0 as scheduled into v_pending;
    exit when found;
    exit when exists (select from blocked where id = p_id);
  end loop;
  if v_pending is null then
    if not close_blocked(p_id, 'completed') then
      return answer_with_job(p_id, false);
    end if;
  else
    if v_pending.place is not null then
      perform return_held_turns(array[row(v_pending.lane, v_pending.key, v_pending.place)::held_turn]);
    end if;
    perform write_resolved(p_id, abs(v_pending.lane), v_pending.attempt);
    insert into ledger (lane, pending, scheduled, completed) values (abs(v_pending.lane), -1, v_pending.scheduled, 1);
    perform note_moves(array[p_id], 'pending', 'completed');
  end if;
  insert into output (id, output) select p_id, p_output where p_output <> 'null' on conflict (id) do nothing;
  return answer_with_job(p_id, true);
end $$;

create or replace function write_resolved(p_id uuid, p_lane int, p_attempt smallint) returns void
language sql as $$
  insert into done (hi_id, lo_id, started_at, finished_at, lane, ids, attempts)
  values (p_id, p_id, now(), now(), p_lane, array[p_id], array[p_attempt])
$$;

-- Ends a job that waits. False: it does not wait. This waits for a resolver that has the row, which waits for nobody.
create or replace function close_blocked(p_id uuid, p_status text) returns boolean
language plpgsql as $$
declare
  v_row blocked%rowtype;
begin
  delete from blocked where id = p_id returning * into v_row;
  if not found then
    return false;
  end if;
  if v_row.place is not null then
    perform return_held_turns(array[row(v_row.lane, v_row.key, v_row.place)::held_turn]);
  end if;
  v_row.lane := abs(v_row.lane);
  if p_status = 'completed' then
    perform write_resolved(p_id, v_row.lane, v_row.attempt);
    insert into ledger (lane, blocked, completed) values (v_row.lane, -1, 1);
  else
    insert into closed (id, status, closed_at, lane, attempt, abandonments)
    values (p_id, p_status, now(), v_row.lane, v_row.attempt, v_row.abandonments);
    insert into ledger (lane, blocked, cancelled) values (v_row.lane, -1, 1);
  end if;
  perform note_moves(array[p_id], 'blocked', p_status);
  perform forget_time_outs(array[v_row.wait]);
  return true;
end $$;
