-- API keys: add, find by hash, revoke. Only the hash of a key is stored.

-- Everything about a key that may be shown and audited: all columns but its hash.
create or replace function shown_key(p_key api_key) returns jsonb
language sql stable
set search_path from current
return to_jsonb(p_key) - 'key_hash';

create or replace function add_key(
  p_actor text, p_name text, p_role text, p_key_hash bytea, p_job_types text[], p_rate_limit_per_second int
) returns api_key
language plpgsql
security definer
set search_path from current
as $$
declare
  v_key api_key;
begin
  insert into api_key (id, name, role, key_hash, job_types, rate_limit_per_second)
  values (new_id(), p_name, p_role, p_key_hash, p_job_types, p_rate_limit_per_second)
  returning * into v_key;
  perform write_audit(p_actor, 'add key', 'key ' || v_key.id, null, shown_key(v_key));
  return v_key;
end $$;

-- Answers with the revoked key, or with no row if there is no such key. A key that was revoked before keeps its time.
create or replace function revoke_key(p_actor text, p_id uuid) returns setof api_key
language plpgsql
security definer
set search_path from current
as $$
declare
  v_before api_key;
  v_after  api_key;
begin
  select * into v_before from api_key where id = p_id for update;
  if not found then
    return;
  end if;
  update api_key set revoked_at = coalesce(revoked_at, now()) where id = p_id returning * into v_after;
  perform write_audit(p_actor, 'revoke key', 'key ' || p_id, shown_key(v_before), shown_key(v_after));
  return next v_after;
end $$;

-- Finds the key with this hash, unless it is revoked. The time of its last use is exact to a minute, so that a request
-- seldom writes. A request that would have to wait for another one's write skips its own.
create or replace function find_key(p_key_hash bytea) returns setof api_key
language sql
security definer
set search_path from current
as $$
  with unmarked as materialized (
    select id
    from api_key
    where key_hash = p_key_hash
      and revoked_at is null
      and coalesce(last_used_at, '-infinity') < now() - interval '1 minute'
    for update skip locked
  ),
  marked as (
    update api_key set last_used_at = now() where id = (select id from unmarked)
  )
  select * from api_key where key_hash = p_key_hash and revoked_at is null
$$;
