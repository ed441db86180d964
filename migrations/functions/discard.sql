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
  update closed set status = 'discarded', closed_at = now()
  where id = p_id and status = 'dead'
  returning lane, reason, attempt into v_dead;
  if not found then
    return answer_with_job(p_id, false);
  end if;
  insert into ledger (lane, dead, discarded) values (v_dead.lane, -1, 1);
  perform write_audit(p_actor, 'discard', 'job ' || p_id,
    jsonb_build_object('status', 'dead', 'dead_reason', v_dead.reason, 'attempts', v_dead.attempt),
    jsonb_build_object('status', 'discarded', 'reason', p_reason));
  return answer_with_job(p_id, true);
end $$;
