-- discard: closes a dead job for good. Answers as answer_with_job does; `applied` is false when the job is not dead. The
-- reason is stored in the audit only.
--
-- Replays and discards of the same job lock its row in `closed`. The first one changes it. The others wait, then find that
-- the row is gone or no longer dead.
create or replace function discard(p_actor text, p_id uuid, p_reason text default null) returns jsonb
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_dead record;
begin
  select lane, reason, attempt, key, place into v_dead from closed where id = p_id and status = 'dead' for update;
  if not found then
    return answer_with_job(p_id, false);
  end if;
  update closed set status = 'discarded', closed_at = now(), key = null, place = null where id = p_id;
  if v_dead.key is not null then -- it blocked its key
    perform return_held_turns(array[row(v_dead.lane, v_dead.key, v_dead.place)::held_turn]);
  end if;
  insert into ledger (lane, dead, discarded) values (v_dead.lane, -1, 1);
  perform note_moves(array[p_id], 'dead', 'discarded');
  perform write_audit(p_actor, 'discard', 'job ' || p_id,
    jsonb_build_object('status', 'dead', 'dead_reason', v_dead.reason, 'attempts', v_dead.attempt),
    jsonb_build_object('status', 'discarded', 'reason', p_reason));
  return answer_with_job(p_id, true);
end $$;
