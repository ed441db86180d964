-- cancel: a pending or blocked job is closed and never runs. Answers as answer_with_job does; `applied` is false when the job is
-- neither. `p_types` are the types that the caller may use, null for all: a job of another type is answered with null, as
-- if it did not exist.
--
-- A cancel and a claim of the same job both delete its row in `ready`. Only one of them can delete it. If the job holds a
-- turn of its key, the turn goes back.
create or replace function cancel(p_id uuid, p_types text[] default null) returns jsonb
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
  -- The type of a job never changes, so this check needs no lock.
  if v_type <> all(p_types) then
    return null;
  elsif v_type like 'sluice.%' then -- its own jobs prove that the queue works
    return answer_with_job(p_id, false);
  end if;

  -- `scheduled` comes first because a due job moves from there to `ready`. If this delete waits for such a move, it finds
  -- no row, and the second delete finds the job. A job whose key has a rate may move back once: hence the second look.
  for look in 1 .. 2 loop
    delete from scheduled where id = p_id returning lane, attempt, abandonments, key, place, -1 as scheduled into v_pending;
    exit when found;
    delete from ready where id = p_id returning lane, attempt, abandonments, key, place, 0 as scheduled into v_pending;
    exit when found;
    exit when exists (select from blocked where id = p_id); -- a job that is released goes from there to `ready`
  end loop;
  if v_pending is null then
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
