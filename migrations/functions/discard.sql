-- discard: closes dead jobs for good. The reason is stored in the audit only.
--
-- Replays and discards of the same job lock its row in `closed`, in the order of the ids. The first one changes it. The others
-- wait, then find that the row is gone or no longer dead.

-- Answers as answer_with_job does; `applied` is false when the job is not dead.
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
  select reason, attempt into v_dead from closed where id = p_id and status = 'dead' for update;
  if not found then
    return answer_with_job(p_id, false);
  end if;
  perform discard_dead(array[p_id]);
  perform write_audit(p_actor, 'discard', 'job ' || p_id,
    jsonb_build_object('status', 'dead', 'dead_reason', v_dead.reason, 'attempts', v_dead.attempt),
    jsonb_build_object('status', 'discarded', 'reason', p_reason));
  return answer_with_job(p_id, true);
end $$;

-- Discards the jobs that are dead, and answers their ids in order. Those that blocked their keys give the turns back.
create or replace function discard_dead(p_ids uuid[]) returns uuid[]
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
  v_ids   uuid[];
  v_turns held_turn[];
begin
  with dead as materialized (
    select id, lane, key, place from closed where id = any(p_ids) and status = 'dead' order by id for update
  ),
  discarded as (
    update closed set status = 'discarded', closed_at = now(), key = null, place = null
    where id = any(array(select id from dead))
  ),
  booked as (
    insert into ledger (lane, dead, discarded) select lane, -count(*), count(*) from dead group by lane
  )
  select coalesce(array_agg(id order by id), '{}'), array_agg(row(lane, key, place)::held_turn) filter (where key is not null)
  into v_ids, v_turns from dead;
  perform return_held_turns(v_turns);
  perform note_moves(v_ids, 'dead', 'discarded');
  return v_ids;
end $$;
