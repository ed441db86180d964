-- dispatch: whose turn is it? Jobs with a key wait in `ready` under the negative number of their lane, in the order of
-- their seq, which is their place in the key. A *turn* is the right to work on a key. An ordered key has one turn, so its
-- jobs run one at a time and in order. A fair key has as many as its queue's concurrency says; without one, any number.
--
-- A turn is held by exactly one of: a row of `ready` or `scheduled` with a place, under a positive lane; a waiting row that has got
-- it ahead (turns-ahead.sql); a key's jobs in one lease; a dead job that blocks its key. Or it has come back: then key and place
-- stand in the queue's lane of kind `returns`. key_state.turns counts all of these, but turns of ordered keys that one claim gave
-- out together are counted by their grant (turn-grants.sql). A fair key has only one turn at a time that is not in a lease, so that
-- keys take turns with each other: the next is given out when that one was claimed.
--
-- Whoever claims from a queue with keys holds the queue's advisory lock until its transaction ends, but not for jobs that have their
-- turns ahead. With the lock it is the dispatcher: nobody else writes key_state, turn_grant, key_cursor and key_policy, or gives
-- out turns. All others only append: a new job, a job that was put back, a turn that came back. So there is no lost wake-up and no
-- lock for each key. The dispatcher waits for nobody: it skips what is locked.
--
-- What the dispatcher reads:
--   1. Turns that came back. The key's next job is the first waiting row after the place. If it does not matter which keys come
--      first (key_lanes.are_alike), it takes as many as the claim needs, oldest first. A turn that is left counts as out, so
--      nobody else gets it, and the claim says that there is more.
--   2. Waiting rows that it has not read yet, best priority first and then oldest, until it has found enough keys whose
--      turn is free. Rows stay where they are; only the position up to which they were read moves (key_cursor). What was
--      read while its key's turn was out is found by 1.
--
-- Order is that of commits, as far as a client can tell. A transaction may take seq 100, stay open while rows after it are
-- read and claimed, and commit. Whoever enqueues after that commit comes later, so row 100 must be seen before that one:
--   3. A position only moves over rows up to a seq that was read before the list of open writers (`open_writers`). What
--      these commit later is looked for again, from where the positions stood when each was first seen. If there were none,
--      nothing can come late up to that seq. So while many seqs lie ahead, the dispatcher does not ask for writers again.
--   4. The dispatcher looks for the next job of each key, and only then for writers that have ended since. What these left
--      is late: it takes back the turns that it has just given to these keys, and looks again. So a row that it has seen was
--      not committed after one that it missed. A writer that ends after that committed later than all that was seen.

-- The queue's advisory lock. Claims of a queue with keys wait here for each other, for a short time.
create or replace function keys_lock_of(p_queue text) returns bigint
language sql stable
return hashtextextended(format('sluice.keys.%s.%s', current_schema(), p_queue), 0);

-- Whoever had the lock may have given out turns ahead (turns-ahead.sql). A claim that may take such turns (p_takes_ahead) needs no
-- lock then and gives it back, which only a rollback to a savepoint does.
create or replace function lock_keys(p_batch claim_batch, p_takes_ahead boolean, out is_locked boolean, out are_ahead boolean)
language plpgsql as $$
declare
  v_lock bigint := keys_lock_of(p_batch.queue);
begin
  is_locked := pg_try_advisory_xact_lock(v_lock);
  are_ahead := false;
  if not is_locked then
    select waited.is_locked, waited.are_ahead into is_locked, are_ahead
    from wait_for_keys(v_lock, p_batch, p_takes_ahead) as waited;
  end if;
end $$;

create or replace function wait_for_keys(
  p_lock bigint, p_batch claim_batch, p_takes_ahead boolean, out is_locked boolean, out are_ahead boolean
)
language plpgsql
set lock_timeout = '100ms'
as $$
begin
  is_locked := true;
  are_ahead := false;
  perform pg_advisory_xact_lock(p_lock);
  if p_takes_ahead and grants_ahead(p_batch) is not null then
    raise sqlstate 'SLAHD';
  end if;
exception
  when lock_not_available then
    is_locked := false;
  when sqlstate 'SLAHD' then
    is_locked := false;
    are_ahead := true;
end $$;

-- Finds up to p_batch.jobs_left jobs whose turn it is, and locks their rows. Their turns count as out from then on, so the
-- caller takes each job or puts it into its lane (list_granted), and stores the grants (store_grants).
create or replace function dispatch(
  p_batch claim_batch, p_before key_cursor, p_is_wider boolean, p_lanes key_lanes, p_types text[], p_run int,
  p_cursor_seqs bigint[], p_gives_ahead boolean, -- nothing in the lanes comes before jobs that get their turns ahead
  out batch claim_batch, out granted granted_jobs, out has_more boolean
)
language plpgsql as $$
declare
  v_highest   bigint := p_before.highest; -- no turn's place is higher
  v_after     key_cursor%rowtype := p_before;
  v_returned  record;
  v_open      record; -- grants
  v_plan      record;
  v_read      record;
  v_look      key_look;
  v_watched   text[] := p_before.writers;
  v_ended     text[];
  v_late      record;
  v_divided   record;
  v_next      record; -- of turns that came back
  v_keys      bigint[]; -- whose next job has to be looked up
  v_seqs      bigint[];
  v_proposals key_proposal[];
  v_followers key_proposal[];
begin
  batch := p_batch;
  v_returned := take_returned(p_before, p_cursor_seqs, batch, p_lanes.are_alike);
  v_open := open_grants(p_before.grants);
  batch.ended_grants := null;
  batch.held := v_open.keys;
  batch.grant_base := nextval('turn_grant_base');
  v_plan := plan_dispatch(batch, p_lanes, v_returned.keys, v_returned.some_old, v_open.may_grow, p_gives_ahead);
  batch := v_plan.batch;
  v_read := read_waiting(batch, v_after, p_lanes, v_highest, v_returned.keys, coalesce(v_plan.ahead, 0), v_plan.is_enough);
  v_after := v_read.cursor;
  v_look := v_read.look;
  v_keys := v_returned.waited || v_look.other_keys;
  v_seqs := v_returned.seqs || v_look.other_seqs;
  v_next := next_of_keys(v_returned.keys, v_returned.places, v_returned.starts, batch.held || v_keys, v_after,
                         case when p_lanes.are_alike and batch.granting = '{}' then p_lanes.straight end);
  loop
    v_proposals := propose(v_next.keys, v_next.places, v_keys, v_seqs, v_after, batch.policy, p_types, batch.held || v_look.together);
    granted := add_granted(v_next.granted, v_look.granted);
    v_followers := find_followers(granted, v_proposals, batch, p_types, p_run);
    v_ended := case when v_watched <> '{}' then array(select unnest(v_watched) except select unnest(open_writers())) end; -- see 4
    v_late := late_rows(p_before, v_ended, v_highest);
    exit when v_late.keys is null;
    v_look := take_back(v_look, v_late.keys, v_late.seqs);
    v_next := next_of_keys(v_returned.keys, v_returned.places, null, null, v_after, null);
    v_keys := v_keys || v_late.keys;
    v_seqs := v_seqs || v_late.seqs;
    v_watched := array(select unnest(v_watched) except select unnest(v_ended));
  end loop;
  v_divided := divide_granted(batch, first_of_keys(granted, v_proposals), v_plan.ahead is not null);
  has_more := v_read.has_more or v_returned.are_left or coalesce((v_divided.ahead).heads, 0) > 0;
  granted := grant_turns(batch, v_divided.first, v_proposals, v_followers);
  batch.waited := note_waited(v_open.ids, v_look, v_proposals, v_followers);
  v_after.grants := v_open.ids || new_grants(batch, granted);
  v_after := grant_ahead(v_after, batch, v_divided.ahead);
  batch.mark_seq := write_key_cursor(
    p_before, v_after, v_read.open,
    p_is_wider or v_look.changed is not null or coalesce(granted.heads, 0) > 0 or v_proposals is not null
      or v_look.behind_keys is not null or v_after.grants <> p_before.grants or v_after.ahead <> p_before.ahead);
  batch.owners := p_batch.owners;
end $$;

-- How turns are given out. batch.granting: the lanes of which they are part of grants. Not where a job waits behind as many turns as
-- the claim needs: a turn then goes from one job to the next, and no state is written for that. `ahead`: so many more jobs may get their
-- turns ahead; null: none may, and those of other workers go into their lanes. `is_enough`: of the turns that came back.
create or replace function plan_dispatch(
  p_batch claim_batch, p_lanes key_lanes, p_returned bigint[], p_some_old boolean, p_may_grow boolean, p_gives_ahead boolean,
  out batch claim_batch, out ahead int, out is_enough boolean
)
language plpgsql as $$
declare
  c_many  constant int := 3; -- keys
  v_found int := (select count(*) from unnest(p_returned) as key
                  where p_batch.buckets is null or abs(key % 360) = any(p_batch.buckets));
begin
  batch := p_batch;
  batch.granting := case when p_may_grow and v_found < greatest(batch.jobs_left, c_many) then p_lanes.granting else '{}' end;
  if p_gives_ahead and p_lanes.are_alike and batch.granting <> '{}' and (batch.buckets is null or batch.owners is not null) then
    ahead := jobs_ahead(batch, v_found);
  else
    batch.owners := null;
  end if;
  -- Old turns may be of a worker that is gone. Without the owners it takes whatever came back.
  if batch.buckets is not null and p_lanes.are_alike and (p_some_old or batch.owners is null) then
    batch.buckets := batch.buckets || array(select distinct abs(key % 360)::int from unnest(p_returned) as key);
  end if;
  is_enough := p_lanes.are_alike and v_found >= batch.jobs_left;
end $$;

create or replace function newest_key_cursor(p_queue text) returns key_cursor
language plpgsql as $$
declare
  v_cursor key_cursor%rowtype;
begin
  select * into v_cursor from key_cursor where queue = p_queue order by version desc limit 1;
  if not found then
    v_cursor := row(p_queue, null, 0, '{}', '{}', '{}', '{}', 0, 0, '-infinity', '{}', 0, '{}')::key_cursor;
  end if;
  return v_cursor;
end $$;

-- Stores how far the dispatcher has read. Answers the seq up to which turns are anybody's: each mark is kept for c_steal_after.
create or replace function write_key_cursor(
  p_before key_cursor, p_after key_cursor, p_open text[], p_is_changed boolean
) returns bigint
language plpgsql as $$
declare
  c_steal_after constant interval := interval '15 s';
  c_lag         constant int := 1000; -- rows
  v_is_marked   boolean := p_before.next_at not between clock_timestamp() - c_steal_after and clock_timestamp();
begin
  if not (p_is_changed or v_is_marked or p_after.seq - p_before.seq > c_lag) then
    return p_before.mark_seq;
  end if;
  if p_open = '{}' then
    p_after.writers := '{}';
    p_after.from_seqs := '{}';
  else
    p_after := with_writers(p_before, p_after, p_open);
  end if;
  with gone as (
    delete from key_cursor where queue = p_before.queue and version = p_before.version
  )
  insert into key_cursor (queue, seq, lanes, seqs, writers, from_seqs, mark_seq, next_seq, next_at, grants, highest, ahead)
  values (p_after.queue, p_after.seq, p_after.lanes, p_after.seqs, p_after.writers, p_after.from_seqs,
          case when v_is_marked then p_before.next_seq else p_before.mark_seq end,
          case when v_is_marked then coalesce(pg_sequence_last_value('ready_seq'), 0) else p_before.next_seq end,
          case when v_is_marked then clock_timestamp() else p_before.next_at end, p_after.grants,
          p_after.highest, p_after.ahead);
  return case when v_is_marked then p_before.next_seq else p_before.mark_seq end;
end $$;

-- Adds the writers whose rows the dispatcher may have missed. A transaction that was prepared has lost the name under which it
-- was seen, so it counts from where the first of all began.
create or replace function with_writers(p_before key_cursor, p_after key_cursor, p_open text[]) returns key_cursor
language plpgsql as $$
begin
  select array_agg(writer), array_agg(from_seq) into p_after.writers, p_after.from_seqs
  from (
    select writer, coalesce(
             (select from_seq from unnest(p_before.writers, p_before.from_seqs) as known(name, from_seq) where name = writer),
             case when writer like '-1/%' then (select min(from_seq) from unnest(p_before.from_seqs) as from_seq) end,
             p_before.seq) as from_seq
    from unnest(p_open) as writer
  ) as open;
  return p_after;
end $$;
