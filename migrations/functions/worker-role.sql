-- The rights of a role for the Worker that does not own the tables. Functions that may be called from outside are
-- `security definer`: they run with the owner's rights. Such a role gets these functions and little else. So it cannot
-- change the audit log, and cannot do anything that is audited without an entry.

-- The owner calls this once: select sluice.grant_worker('sluice_worker'). `sluice migrate` keeps the rights up to date.
create or replace function grant_worker(p_role text) returns void
language plpgsql
set search_path from current
as $$
declare
  v_owner oid := (select relowner from pg_class where oid = 'audit'::regclass);
begin
  if pg_has_role(p_role, v_owner, 'member')
     or has_table_privilege(p_role, 'audit', 'insert, update, delete, truncate, trigger')
     or (select rolcreaterole from pg_roles where rolname = p_role) then
    raise exception using errcode = 'invalid_grant_operation',
      message = format('the role %I can write the audit by itself', p_role),
      hint = 'Make a role that is a member of no other: create role … login password ''…''.';
  end if;
  insert into worker_role (name) values (p_role) on conflict do nothing;
  perform renew_worker_rights();
end $$;

-- Gives every such role that still exists exactly the rights of this version.
create or replace function renew_worker_rights() returns void
language plpgsql
set search_path from current
as $$
declare
  v_schema   text := current_schema();
  v_role     text;
  v_function regprocedure;
begin
  for v_role in select name from worker_role where exists (select from pg_roles where rolname = name) loop
    execute format('revoke all on all functions in schema %I from %I', v_schema, v_role);
    execute format('revoke all on all tables in schema %I from %I', v_schema, v_role);
    execute format('grant usage on schema %I to %I', v_schema, v_role);
    execute format('grant select on audit, books, breaker, cache_probe, migration, pause, round to %I', v_role);
    -- All columns but the hash.
    execute format('grant select (id, name, role, job_types, rate_limit_per_second, created_at, revoked_at, last_used_at) '
                   'on api_key to %I', v_role);
    for v_function in select oid from pg_proc where pronamespace = v_schema::regnamespace and prosecdef loop
      execute format('grant execute on function %s to %I', v_function, v_role);
    end loop;
  end loop;
end $$;
