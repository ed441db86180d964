-- key policy: what a deployment says about a queue's keys. Claims bring it along, and the dispatcher stores what is new, so a
-- new deployment counts from its first claim on, and an older one that still runs changes nothing. Settles and the reaper read
-- what is stored.

-- The policy of a queue, with the defaults where no deployment said anything.
create or replace function key_policy_of(p_queue text) returns key_policy
language plpgsql as $$
declare
  v_policy key_policy%rowtype;
begin
  select * into v_policy from key_policy where queue = p_queue;
  if not found then
    v_policy := row(p_queue, true, null, null)::key_policy;
  end if;
  return v_policy;
end $$;

-- Whether a deployment's policy is the newest of the queue. Of the policies that were seen in the last 15 minutes that is the one that
-- was first seen last, as with schedules in code: while two versions run, they do not take turns. An older policy counts again when
-- the newer one was not seen for 15 minutes. Called under the dispatcher's lock of the queue. It mostly reads one row.
create or replace function is_newest_policy(p_queue text, p_policy jsonb) returns boolean
language plpgsql as $$
declare
  c_gone  constant interval := interval '15 minutes';
  c_note  constant interval := interval '4 minutes'; -- a row is updated this often at most
  v_first timestamptz;
  v_seen  timestamptz;
begin
  select first_seen_at, seen_at into v_first, v_seen from key_policy_version where queue = p_queue and policy = p_policy;
  if v_seen is null or v_seen < clock_timestamp() - c_note then
    delete from key_policy_version where queue = p_queue and seen_at < clock_timestamp() - c_gone;
    insert into key_policy_version as known (queue, policy) values (p_queue, p_policy)
    on conflict (queue, policy) do update set seen_at = excluded.seen_at
    returning known.first_seen_at into v_first;
  end if;
  return not exists (
    select from key_policy_version
    where queue = p_queue and first_seen_at > v_first and seen_at >= clock_timestamp() - c_gone);
end $$;

-- The policy that a deployment asks for. Null: it does not say, so it is the stored one.
create or replace function policy_with(p_stored key_policy, p_policy jsonb) returns key_policy
language plpgsql as $$
begin
  if p_policy is not null then
    p_stored.blocks := coalesce(p_policy ->> 'on_dead', 'block') = 'block';
    p_stored.concurrency := (p_policy ->> 'concurrency')::int;
    p_stored.seconds_apart := (p_policy ->> 'seconds_apart')::float8;
  end if;
  return p_stored;
end $$;

-- Stores p_policy if it differs: { on_dead, concurrency, seconds_apart }. Null keeps what is stored, and so does the policy of an
-- older deployment (is_deployed). Called by the dispatcher, under its lock.
-- `is_wider`: the shares have changed, so keys without a free turn may have one now.
create or replace function apply_key_policy(
  p_queue text, p_policy jsonb, out policy key_policy, out is_wider boolean
)
language plpgsql as $$
declare
  v_old key_policy%rowtype := key_policy_of(p_queue);
begin
  policy := v_old;
  if p_policy is not null and (not p_policy ? 'is_deployed' or is_newest_policy(p_queue, p_policy)) then
    policy := policy_with(v_old, p_policy);
  end if;
  is_wider := row(policy.concurrency, policy.seconds_apart) is distinct from row(v_old.concurrency, v_old.seconds_apart);
  if policy is distinct from v_old then
    insert into key_policy values (policy.*)
    on conflict (queue) do update
    set blocks = excluded.blocks, concurrency = excluded.concurrency, seconds_apart = excluded.seconds_apart;
  end if;
  if not policy.blocks then
    perform free_blocked_keys(p_queue);
  end if;
end $$;

-- Dead jobs give the turns back that they hold. There are such jobs when the policy has just changed, and when a settle read the
-- policy before. A dead job that somebody replays or discards in this moment is locked: the next dispatch looks again.
create or replace function free_blocked_keys(p_queue text) returns void
language plpgsql as $$
declare
  v_turns held_turn[];
begin
  with blocking as materialized (
    select closed.id, closed.lane, closed.key, closed.place
    from (select lane from lane where queue = p_queue and kind = 'ordered' offset 0) as line
    join closed using (lane)
    where closed.status = 'dead' and closed.key is not null
    for update of closed skip locked
  ),
  freed as (
    update closed set key = null, place = null where id = any(array(select id from blocking))
  )
  select array_agg(row(lane, key, place)::held_turn) into v_turns from blocking;
  perform return_held_turns(v_turns);
end $$;
