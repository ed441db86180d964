-- How `sluice migrate` applies files. Each run that has something to apply makes these functions anew.
-- docs/migrations.md tells the order of the steps and the rules for the files.
--
-- Locks: `create or replace function` and `drop function` lock rows of the catalog, which no caller waits for. A caller
-- that runs meanwhile keeps the old text; the next call finds the new one. `create or replace view` and `drop view` wait
-- for the view's readers (access exclusive), and whoever reads it next waits for the commit. The runner sets lock_timeout,
-- so that such a wait is short, and tries again.

drop function if exists
  refuse_newer_schema, apply_numbered_file, apply_function_files, apply_function_file, drop_objects, restore_grants,
  list_grants, list_objects;

-- An older release must not touch a newer schema: it would drop functions that the newer Worker calls.
create function refuse_newer_schema(p_version int, p_names text[]) returns void
language plpgsql as $$
declare
  v_version int := 0;
  v_name    text;
begin
  if to_regprocedure('schema_version()') is not null then
    execute 'select schema_version()' into v_version;
  end if;
  select name into v_name from migration where name !~ '/' and name <> all(p_names) limit 1;
  if v_version > p_version or v_name is not null then
    raise exception 'the schema is newer than this release of Sluice (version % against %, file %): use a newer release',
      v_version, p_version, coalesce(v_name, 'none');
  end if;
end $$;

-- Applies a numbered file once. Returns what it did, in words.
create function apply_numbered_file(p_name text, p_checksum text, p_text text) returns text[]
language plpgsql as $$
declare
  v_checksum text := (select checksum from migration where name = p_name);
begin
  if v_checksum = p_checksum then
    return '{}';
  elsif v_checksum is not null then
    raise exception '% has changed since it was applied: put the old text back, and write a file with the next number', p_name;
  end if;
  execute p_text;
  insert into migration (name, checksum) values (p_name, p_checksum);
  return array['applied ' || p_name];
end $$;

-- Applies the function files whose checksum is not the recorded one, and drops what no file defines any more. All of it is
-- one transaction of the caller, so nobody sees half of it. Returns what it did, in words.
create function apply_function_files(p_names text[], p_checksums text[], p_texts text[]) returns text[]
language plpgsql as $$
declare
  v_own    text[] := array(select unnest(objects) from migration); -- what files have defined until now
  v_before text[] := array(select object from list_objects());
  v_grants jsonb  := (select jsonb_agg(granted) from list_grants() as granted);
  v_gone   text[];
  v_done   text[] := '{}';
  v_passes int := 0;
begin
  delete from migration where name like 'functions/%' and name <> all(p_names);
  loop
    for n in 1 .. cardinality(p_names) loop
      continue when exists (select from migration where name = p_names[n] and checksum = p_checksums[n]);
      perform apply_function_file(p_names[n], p_checksums[n], p_texts[n], v_own);
      v_done := v_done || ('applied ' || p_names[n]);
    end loop;
    v_gone := array(select object from list_objects()
                    where object = any(v_own) and object not in (select unnest(objects) from migration));
    perform drop_objects(v_gone, v_own);
    v_done := v_done || array(select 'dropped ' || gone from unnest(v_gone) as gone);
    -- A dropped function takes along what is bound to it, for instance a view: its file is applied again.
    exit when not exists (select from migration where checksum = '' and name = any(p_names));
    v_passes := v_passes + 1;
    if v_passes > cardinality(p_names) then
      raise exception 'function files drop what others of them define';
    end if;
  end loop;
  if cardinality(v_done) > 0 then
    perform restore_grants(v_grants, v_before);
    -- Only the owner, the Worker's role and those whom the owner granted it may call functions.
    execute format('revoke execute on all functions in schema %I from public', current_schema());
    perform renew_worker_rights();
  end if;
  return v_done;
end $$;

-- Applies one file and records what it has defined. A function whose signature and result stay is replaced in place: it
-- keeps its grants and its oid, so a running caller notices nothing. Postgres refuses to replace one whose result changed,
-- or a view that loses a column: then whatever the file names is dropped first.
create function apply_function_file(p_name text, p_checksum text, p_text text, p_own text[]) returns void
language plpgsql as $$
declare
  v_before text[] := array(select id || version from list_objects());
begin
  begin
    execute p_text;
  exception
    when invalid_function_definition or invalid_table_definition then
      perform drop_objects(
        array(select object from list_objects()
              where object = any(p_own) and p_text ~ ('(function|view)\s+' || name || '\M')),
        p_own);
      execute p_text;
  end;
  insert into migration (name, checksum, objects)
  values (p_name, p_checksum,
          array(select object from list_objects() where id || version <> all(v_before) order by object))
  on conflict (name) do update
    set checksum = excluded.checksum, objects = excluded.objects, applied_at = excluded.applied_at;
exception
  when others then
    raise exception '%: %', p_name, sqlerrm using errcode = sqlstate;
end $$;

-- Drops objects, and what is bound to them, if all of that is Sluice's own. Files that defined some of it lose their
-- checksum, so they are applied again. A view, default or index of the user's is never dropped: it is an error.
create function drop_objects(p_objects text[], p_own text[]) returns void
language plpgsql as $$
declare
  v_doomed  text[];
  v_foreign text;
  v_drop    text;
begin
  with recursive doomed as (
    select class, id from list_objects() where object = any(p_objects)
    union
    select bound.class, bound.id
    from doomed cross join lateral (
      select classid, objid from pg_depend where refclassid = doomed.class and refobjid = doomed.id
      union all -- from the rule of a view to the view
      select 'pg_class'::regclass::oid, ev_class from pg_rewrite where doomed.class = 'pg_rewrite'::regclass and oid = doomed.id
    ) as bound (class, id)
  ),
  sorted as (
    select doomed.class, doomed.id, own.object
    from doomed left join list_objects() as own
      on own.class = doomed.class and own.id = doomed.id and own.object = any(p_own || p_objects)
  )
  select array_agg(object) filter (where object is not null),
         min(pg_describe_object(class, id, 0))
           filter (where object is null and class not in ('pg_type'::regclass, 'pg_rewrite'::regclass))
  into v_doomed, v_foreign
  from sorted;
  if v_foreign is not null then
    raise exception using errcode = 'dependent_objects_still_exist',
      message = format('%s depends on %s, which this release changes: drop it, migrate, and create it again',
                       v_foreign, (select string_agg(object, ', ' order by object) from unnest(p_objects) as object));
  end if;
  update migration set checksum = '' where objects && v_doomed;
  loop
    select format('drop %s %s cascade', kind, object) into v_drop from list_objects() where object = any(p_objects) limit 1;
    exit when not found;
    execute v_drop;
  end loop;
end $$;

-- Gives back the grants of objects that were dropped and made again. Where the signature has changed, the grant goes to
-- the new functions of that name.
create function restore_grants(p_grants jsonb, p_before text[]) returns void
language plpgsql as $$
declare
  v_grant text;
begin
  for v_grant in
    select format('grant %s on %s %s to %s%s', lost.privilege, case now.kind when 'view' then 'table' else now.kind end,
                  now.object, lost.grantee, case when lost.is_grantable then ' with grant option' else '' end)
    from jsonb_to_recordset(p_grants) as lost(object text, name text, grantee text, privilege text, is_grantable boolean)
    join list_objects() as now
      on now.object = lost.object
      or (now.name = lost.name and now.object <> all(p_before)
          and not exists (select from list_objects() as same where same.object = lost.object))
    where (now.object, lost.grantee, lost.privilege) not in (select object, grantee, privilege from list_grants())
  loop
    execute v_grant;
  end loop;
end $$;

-- What others than the owner may do with functions and views.
create function list_grants() returns table (object text, name text, grantee text, privilege text, is_grantable boolean)
language sql stable as $$
  select object, name, case grantee when 0 then 'public' else grantee::regrole::text end, privilege_type, is_grantable
  from list_objects() cross join aclexplode(acl)
  where grantee <> owner
$$;

-- The functions and views of the schema. `version` changes whenever one is replaced: it is where its row in the catalog is.
create function list_objects()
returns table (object text, name text, kind text, class oid, id oid, version text, owner oid, acl aclitem[])
language sql stable as $$
  select oid::regprocedure::text, proname::text, 'routine', 'pg_proc'::regclass::oid, oid, ctid::text, proowner, proacl
  from pg_proc
  where pronamespace = current_schema()::regnamespace and prokind in ('f', 'p')
  union all
  select view.oid::regclass::text, relname::text, 'view', 'pg_class'::regclass::oid, view.oid, rule.ctid::text, relowner,
         relacl
  from pg_class as view join pg_rewrite as rule on ev_class = view.oid
  where relnamespace = current_schema()::regnamespace and relkind = 'v'
$$;

do $$
begin
  execute format('revoke execute on all functions in schema %I from public', current_schema());
end $$;
