-- cancel: a pending or blocked job is closed and never runs. Answers as answer_with_job does; `applied` is false when the job is
-- neither. `p_types` are the types that the caller may use, null for all: a job of another type is answered with null, as
-- if it did not exist. With `p_running` a job that is being processed is asked to stop, and the answer has
-- `cancel_requested`.
--
-- A cancel and a claim of the same job both delete its row in `ready`. Only one of them can delete it. If the job holds a
-- turn of its key, the turn goes back.
create or replace function cancel(p_id uuid, p_types text[] default null, p_running boolean default false) returns jsonb
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_type    text := (select lane.type from job join lane using (lane) where job.id = p_id);
  v_pending record;
  v_asked   boolean := false;
begin
  -- The type of a job never changes, so this check needs no lock.
  if v_type is null or v_type <> all(p_types) then
    return null;
  elsif v_type like 'sluice.%' then -- its own jobs prove that the queue works
    return answer_with_job(p_id, false);
  end if;

  -- `scheduled` comes first because a due job moves from there to `ready`. If this delete waits for such a move, it finds
  -- no row, and the second delete finds the job. A job whose key has a rate may move back once: hence the second look. A
  -- third one is for a job that a settle has made pending meanwhile.
  for look in 1 .. 3 loop
    delete from scheduled where id = p_id returning lane, attempt, abandonments, key, place, -1 as scheduled into v_pending;
    exit when found;
    delete from ready where id = p_id returning lane, attempt, abandonments, key, place, 0 as scheduled into v_pending;
    exit when found;
    exit when exists (select from blocked where id = p_id); -- a job that is released goes from there to `ready`
    v_asked := p_running and request_cancel(p_id);
    exit when v_asked;
  end loop;
  if v_asked then
    return answer_with_job(p_id, false) || jsonb_build_object('cancel_requested', true);
  elsif v_pending is null then
    return answer_with_job(p_id, close_blocked(p_id, 'cancelled'));
  end if;
  if v_pending.place is not null then
    perform return_held_turns(array[row(v_pending.lane, v_pending.key, v_pending.place)::held_turn]);
  end if;
  v_pending.lane := abs(v_pending.lane);
  insert into closed (id, status, closed_at, lane, attempt, abandonments)
  values (p_id, 'cancelled', now(), v_pending.lane, v_pending.attempt, v_pending.abandonments);
  insert into ledger (lane, pending, scheduled, cancelled) values (v_pending.lane, -1, v_pending.scheduled, 1);
  perform note_moves(array[p_id], 'pending', 'cancelled');
  return answer_with_job(p_id, true);
end $$;

-- Asks the worker of a job to stop. False: no lease holds the job.
--
-- The lock of the lease decides between this and a settle. A settle that comes first takes the job out of the lease. One that
-- comes later has a snapshot that sees the request: a completion applies, and any other outcome means cancelled (judge_jobs).
create or replace function request_cancel(p_id uuid) returns boolean
language plpgsql as $$
begin
  -- By the index on deadlines, as in the view `jobs`.
  perform from lease where p_id = any(ids) and deadline > now() - interval '1 hour' for update;
  if not found then
    return false;
  end if;
  insert into cancel_request (id) values (p_id) on conflict do nothing;
  return true;
end $$;

-- Which of these running jobs were asked to stop. A drain looks every few seconds.
create or replace function cancel_requested(p_ids uuid[]) returns uuid[]
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select array(select id from cancel_request where id = any(p_ids))
$$;
