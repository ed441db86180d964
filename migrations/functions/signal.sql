-- signal: something that happened outside, by a name and a key. The first one for a name and key counts. A waiting job has an edge
-- from the signal's id, so a signal is one more way to end a wait.
--
-- Signals are sent in the caller's transaction, which may stay open. Whoever judges an edge from a signal that is not there must
-- not miss one that is on its way: a sender holds a lock in shared mode until it commits, and then looks for edges; the judge
-- tries the lock in exclusive mode. There are 1024 such locks, so many signals in one transaction do not fill the lock table, and
-- senders never wait for each other.

-- Version 8: no job has such an id.
create or replace function signal_id(name text, key text) returns uuid
language sql immutable
return overlay(overlay(left(encode(sha256(convert_to(length(name) || ':' || name || key, 'UTF8')), 'hex'), 32)
                       placing '8' from 13) placing '8' from 17)::uuid;

create or replace function is_signal(id uuid) returns boolean
language sql immutable
return substr(id::text, 15, 1) = '8';

create or replace function signal_lock_of(id uuid) returns bigint
language sql stable
return hashtextextended(format('sluice.signal.%s.%s', current_schema(), abs(low_of(id) % 1024)), 0);

-- True: it was the first for this name and key.
create or replace function signal(p_name text, p_key text, p_payload jsonb default null) returns boolean
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_id    uuid := signal_id(p_name, p_key);
  v_fault text := case
    when p_name is null or p_name !~ '^[a-z][a-z0-9_.-]{0,62}$'
      then 'name: lower case letters, digits, ".", "_" and "-", at most 63, a letter first'
    when p_key is null or length(p_key) not between 1 and 255 then 'key: must have 1 to 255 characters'
    when payload_bytes(p_payload) > 2600 and octet_length(p_payload::text) > 65536
      then 'payload: must not be larger than 64 KiB' end;
begin
  if v_fault is not null then
    perform refuse(v_fault);
  end if;
  perform pg_advisory_xact_lock_shared(signal_lock_of(v_id));
  insert into signal (id, name, key, payload) values (v_id, p_name, p_key, p_payload) on conflict (id) do nothing;
  if not found then
    return false;
  end if;
  perform end_chains(array[v_id], true);
  return true;
end $$;

create or replace function state_of_signal(p_id uuid) returns text
language plpgsql as $$
begin
  if not pg_try_advisory_xact_lock(signal_lock_of(p_id)) then
    return null;
  end if;
  return case when exists (select from signal where id = p_id) then 'completed' else 'open' end;
end $$;

-- What was sent; null: nothing yet.
create or replace function signal_of(p_name text, p_key text) returns jsonb
language sql stable
security definer
set search_path from current
as $$
  select jsonb_build_object('payload', payload, 'at', sent_at) from signal where id = signal_id(p_name, p_key)
$$;
