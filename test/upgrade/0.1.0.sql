-- statement: "\n      select \"id\", \"name\", \"role\", \"job_types\", \"rate_limit_per_second\", (extract(epoch from created_at) * 1000)::float8 as created_at, (extract(epoch from revoked_at) * 1000)::float8 as revoked_at, (extract(epoch from last_used_at) * 1000)::float8 as last_used_at\n      from \"sluice\".add_key(\n        $1::text,\n        $2::text,\n        $3::text,\n        decode($4::text, 'hex'),\n        $5::text[],\n        $6::int\n      )"
-- statement: "select \"sluice\".add_partitions() as count"
-- statement: "select \"sluice\".advance_cursors()"
-- statement: "select \"sluice\".check_reach() as count"
-- statement: "select \"sluice\".mend_stamps() as count"
-- statement: "\n      select \"sluice\".audit_test_notice($1::text, $2::jsonb)"
-- statement: "select queue, due from \"sluice\".backlog($1::text[], $2::int)"
-- statement: "select \"queue\", \"type\", \"priority\", \"enqueued\", \"pending\", \"scheduled\", \"leased\", \"completed\", \"failed\", \"dead\", \"discarded\", \"cancelled\", \"expired\" from \"sluice\".books"
-- statement: "\n      select \"sluice\".cancel($1::uuid, $2::text[]) as changed"
-- statement: "\n      select \"alarm\", \"queue\", \"job_type\"\n      from \"sluice\".change_alarms(\n        $1::jsonb,\n        $2::jsonb\n      )"
-- statement: "\n      select \"sluice\".claim(\n        $1::text,\n        $2::text[],\n        $3::int,\n        $4::float8,\n        $5::text,\n        $6::bigint,\n        $7::jsonb,\n        $8::jsonb,\n        $9::uuid[],\n        $10::uuid[],\n        $11::jsonb,\n        $12::boolean\n      ) as claimed"
-- statement: "\n      select \"id\", \"target\", \"notice\", \"tries\"\n      from \"sluice\".claim_deliveries(\n        $1::jsonb, $2::int, $3::float8)"
-- statement: "select \"sluice\".close_breaker_by_probe($1::uuid, $2::uuid) as changed"
-- statement: "\n      select \"sluice\".complete(\n        $1::text::uuid,\n        $2::text::uuid,\n        $3::text::jsonb\n      ) as applied"
-- statement: "\n      select count(*) as dead\n      from \"sluice\".dead_letters_of($1::text, $2::text, $3::int)"
-- statement: "select queue, sum(pending) as pending from \"sluice\".books group by queue"
-- statement: "select \"sluice\".discard($1::text, $2::uuid, $3::text) as changed"
-- statement: "select to_char(\"sluice\".drop_oldest_day(), 'YYYY-MM-DD') as day"
-- statement: "select \"sluice\".enqueue_jobs($1::jsonb) as answers"
-- statement: "\n      select id\n      from \"sluice\".enqueue_many(\n        $1::text,\n        array(select jsonb_array_elements($2::text::jsonb))\n      ) as id"
-- statement: "\n      select id\n      from \"sluice\".enqueue_many(\n        $1::text,\n        array(select jsonb_array_elements($2::text::jsonb)), queue => $3::text::text, priority => $4::text::integer, max_attempts => $5::text::integer, scheduled_at => $6::text::timestamp with time zone, expires_at => $7::text::timestamp with time zone, traceparent => $8::text::text, tags => array(select jsonb_array_elements_text($9::text::jsonb))\n      ) as id"
-- statement: "\n      select \"sluice\".enqueue($1::text, $2::text::jsonb) as id"
-- statement: "\n      select \"sluice\".enqueue($1::text, $2::text::jsonb, queue => $3::text::text, priority => $4::text::integer, max_attempts => $5::text::integer, scheduled_at => $6::text::timestamp with time zone, expires_at => $7::text::timestamp with time zone, idempotency_key => $8::text::text, partition_key => $9::text::text, traceparent => $10::text::text, tags => array(select jsonb_array_elements_text($11::text::jsonb))) as id"
-- statement: "\n      select id, (extract(epoch from lease_expires_at) * 1000)::float8 as lease_expires_at\n      from \"sluice\".extend(\n        $1::uuid[],\n        $2::uuid[],\n        $3::float8\n      )"
-- statement: "\n      select \"sluice\".extend_one($1::uuid, $2::uuid, $3::float8) as changed"
-- statement: "\n      select \"id\", \"type\", \"queue\", \"status\", \"priority\", \"payload\", \"attempts\", \"max_attempts\", (extract(epoch from created_at) * 1000)::float8 as created_at, (extract(epoch from scheduled_at) * 1000)::float8 as scheduled_at, (extract(epoch from started_at) * 1000)::float8 as started_at, (extract(epoch from completed_at) * 1000)::float8 as completed_at, (extract(epoch from expires_at) * 1000)::float8 as expires_at, \"dead_reason\", \"partition_key\", \"tags\", \"idempotency_key\", \"traceparent\", \"output\", \"sluice\".errors_of(id, true) as errors\n      from \"sluice\".find_job($1::uuid)"
-- statement: "\n      select \"id\", \"status\", \"attempts\", \"errors\"\n      from unnest($1::uuid[]) as requested_id\n      cross join lateral \"sluice\".find_job(requested_id)"
-- statement: "select \"id\", \"name\", \"role\", \"job_types\", \"rate_limit_per_second\", (extract(epoch from created_at) * 1000)::float8 as created_at, (extract(epoch from revoked_at) * 1000)::float8 as revoked_at, (extract(epoch from last_used_at) * 1000)::float8 as last_used_at from \"sluice\".find_key(decode($1::text, 'hex'))"
-- statement: "select \"sluice\".fold_ledger($1::int) as count"
-- statement: "select \"sluice\".knows_queue($1::text) as known"
-- statement: "\n      select \"id\", (extract(epoch from at) * 1000)::float8 as at, \"actor\", \"action\", \"target\", \"before\", \"after\"\n      from \"sluice\".audit\n      \n      order by \"audit\".\"id\" desc\n      limit $1::int"
-- statement: "\n      select \"id\", (extract(epoch from at) * 1000)::float8 as at, \"actor\", \"action\", \"target\", \"before\", \"after\"\n      from \"sluice\".audit\n      where \"audit\".\"id\" < $1\n      order by \"audit\".\"id\" desc\n      limit $2::int"
-- statement: "\n      select \"type\", (extract(epoch from opened_at) * 1000)::float8 as opened_at from \"sluice\".breaker where \"breaker\".\"closed_at\" is null"
-- statement: "\n      select \"id\", \"type\", \"queue\", \"status\", \"priority\", \"payload\", \"attempts\", \"max_attempts\", (extract(epoch from created_at) * 1000)::float8 as created_at, (extract(epoch from scheduled_at) * 1000)::float8 as scheduled_at, (extract(epoch from started_at) * 1000)::float8 as started_at, (extract(epoch from completed_at) * 1000)::float8 as completed_at, (extract(epoch from expires_at) * 1000)::float8 as expires_at, \"dead_reason\", \"partition_key\", \"tags\", \"idempotency_key\", \"traceparent\", \"output\", \"errors\"\n      from \"sluice\".list_dead_letters(\n        $1::text,\n        $2::text,\n        $3::uuid,\n        $4::int\n      )"
-- statement: "\n      select \"id\", \"type\", \"queue\", \"status\", \"priority\", \"payload\", \"attempts\", \"max_attempts\", (extract(epoch from created_at) * 1000)::float8 as created_at, (extract(epoch from scheduled_at) * 1000)::float8 as scheduled_at, (extract(epoch from started_at) * 1000)::float8 as started_at, (extract(epoch from completed_at) * 1000)::float8 as completed_at, (extract(epoch from expires_at) * 1000)::float8 as expires_at, \"dead_reason\", \"partition_key\", \"tags\", \"idempotency_key\", \"traceparent\", \"output\", \"errors\"\n      from \"sluice\".list_jobs(\n        $1::text[],\n        $2::text,\n        $3::text,\n        $4::text,\n        $5::uuid,\n        $6::int\n      )"
-- statement: "select looked, wrong from \"sluice\".inspect()"
-- statement: "\n      select \"id\", \"name\", \"role\", \"job_types\", \"rate_limit_per_second\", (extract(epoch from created_at) * 1000)::float8 as created_at, (extract(epoch from revoked_at) * 1000)::float8 as revoked_at, (extract(epoch from last_used_at) * 1000)::float8 as last_used_at\n      from \"sluice\".api_key\n      order by \"api_key\".\"revoked_at\" is not null, \"api_key\".\"id\" desc\n      limit $1::int"
-- statement: "select \"kind\", \"name\", (extract(epoch from since) * 1000)::float8 as since from \"sluice\".pause"
-- statement: "select \"sluice\".open_breaker($1::text) as changed"
-- statement: "select \"sluice\".pause($1::text, $2::text, $3::text) as changed"
-- statement: "\n      select (extract(epoch from at) * 1000)::float8 as at, (extract(epoch from running_since) * 1000)::float8 as running_since, (extract(epoch from drained_at) * 1000)::float8 as drained_at, (extract(epoch from reaped_at) * 1000)::float8 as reaped_at, (extract(epoch from watched_at) * 1000)::float8 as watched_at,\n             is_read_only\n      from (\n        select now() as at,\n               coalesce((select ended_at from \"sluice\".round order by id limit 1),\n                        (select max(applied_at) from \"sluice\".migration)) as running_since,\n               (select ended_at from \"sluice\".round where kind = 'drain' order by id desc limit 1) as drained_at,\n               (select ended_at from \"sluice\".round where kind = 'reap' order by id desc limit 1) as reaped_at,\n               (select ended_at from \"sluice\".round where kind = 'watch' order by id desc limit 1) as watched_at,\n               current_setting('transaction_read_only') = 'on' as is_read_only -- on a standby it always is\n      ) as seen"
-- statement: "select \"sluice\".prune($1::int) as count"
-- statement: "\n      select given_up, pruned\n      from \"sluice\".prune_deliveries(\n        $1::int, $2::int, $3::int)"
-- statement: "select alarms, targets, silences from \"sluice\".read_alarms()"
-- statement: "select buckets, bounds from \"sluice\".durations($1::int)"
-- statement: "\n      select (extract(epoch from minute) * 1000)::float8 as minute, queue, type, enqueued, completed, failed, expired, ready\n      from \"sluice\".recent_minutes($1::int)"
-- statement: "select completed, failed, is_on_trial from \"sluice\".recent_attempts($1::text)"
-- statement: "select \"sluice\".record_enqueue_errors($1::int)"
-- statement: "\n      select \"sluice\".record_round(\n        $1::text,\n        $2::text,\n        $3::float8,\n        $4::jsonb\n      ) as id"
-- statement: "select \"sluice\".reap_expired($1::int) as count"
-- statement: "\n      select returned, buried from \"sluice\".reap_leases($1::int, $2::jsonb)"
-- statement: "\n      select \"sluice\".replay(\n        $1::text,\n        $2::uuid,\n        $3::jsonb\n      ) as changed"
-- statement: "\n      select queue, replayed\n      from \"sluice\".replay_many(\n        $1::text,\n        $2::text,\n        $3::text,\n        $4::int,\n        $5::float8\n      )"
-- statement: "select \"sluice\".require_schema_version($1::int) as version"
-- statement: "select \"sluice\".resume($1::text, $2::text, $3::text) as changed"
-- statement: "select \"id\", \"name\", \"role\", \"job_types\", \"rate_limit_per_second\", (extract(epoch from created_at) * 1000)::float8 as created_at, (extract(epoch from revoked_at) * 1000)::float8 as revoked_at, (extract(epoch from last_used_at) * 1000)::float8 as last_used_at from \"sluice\".revoke_key($1::text, $2::uuid)"
-- statement: "\n      select \"sluice\".settle(\n        $1::uuid[], $2::uuid[], $3::jsonb\n      ) as statuses"
-- statement: "\n      select \"sluice\".settle_one($1::uuid, $2::uuid, $3::jsonb) as changed"
-- statement: "select \"sluice\".settle_deliveries($1::jsonb) as settled"
-- statement: "\n      select \"sluice\".silence_alarm($1::text, $2::text, $3::timestamptz)"
-- statement: "\n      select (extract(epoch from at) * 1000)::float8 as at, groups, minutes, rounds, (extract(epoch from running_since) * 1000)::float8 as running_since, open_breakers, live_workers, expired_lease_seconds,\n             oldest_transaction, tables, claim_ms, enqueue_errors, impossible_states\n      from \"sluice\".snapshot($1::int[])"
-- Brings the schema "sluice" up to date: run it with psql as the role that owns it. You can run it again, also after an error.

-- the schema
begin isolation level read committed read write;
set local search_path to sluice, pg_temp;
select pg_advisory_xact_lock(hashtextextended('sluice.migrate.sluice', 0));
set local lock_timeout = '200ms';
set local client_min_messages = warning;
set local check_function_bodies = off;
do $$
begin
  if to_regnamespace('sluice') is null then
    create schema sluice;
  end if;
end $$;
create table if not exists migration (
  name       text primary key,
  checksum   text not null,
  objects    text[] not null default '{}', -- the functions and views that the file defined
  applied_at timestamptz not null default now()
);
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
                       v_foreign, array_to_string(p_objects, ', '));
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

select refuse_newer_schema(1, array[$file$0001_tables.sql$file$]::text[]);
select null as line where false;
commit;

-- 0001_tables.sql
begin isolation level read committed read write;
set local search_path to sluice, pg_temp;
select pg_advisory_xact_lock(hashtextextended('sluice.migrate.sluice', 0));
set local lock_timeout = '200ms';
set local client_min_messages = warning;
set local check_function_bodies = off;
select unnest(apply_numbered_file('0001_tables.sql', '9ecb043ed14e33501ed67976d5d83ceed24b817ec43e9167dbf3c156679450d3', $file$-- The tables of the queue. A job's state is the table that it is in. A claim deletes rows from a narrow table whose dead
-- rows all lie before a cursor. Long-lived rows are written once. docs/engine.md explains why.
--
-- Names are unqualified: the runner sets the search_path to the schema that the deployment chose.

-- A lane is a combination of queue, type and priority. Pausing, limits and breakers choose lanes and never filter rows.
-- Two transactions that need the same new lane may each make one, rather than wait for each other. Both lanes work, and
-- later jobs use the older one. Isolated jobs have lanes of their own (reap_leases).
create table lane (
  lane     int generated always as identity primary key,
  queue    text not null check (queue ~ '^[a-z][a-z0-9_.-]{0,62}$'),
  type     text not null check (type ~ '^[a-z][a-z0-9_.-]{0,62}$'),
  priority smallint not null check (priority between 0 and 9),
  group_size smallint not null default 0 -- isolated jobs are claimed in groups of this size; 0: not a lane of isolated jobs
);
create index lane_by_name on lane (queue, priority, type, group_size, lane);

-- Limits of columns in the tables that jobs move through. Postgres plans a table's check constraint again for every
-- statement, and that of a domain once in a session, so these cost nothing (docs/decisions/constraints.md). inspect.sql
-- looks for other impossible states. The tests add real constraints (test/support/checks.sql).
create domain allowed_attempts as smallint check (value between 1 and 20);
create domain payload_object as jsonb check (jsonb_typeof(value) = 'object');
create domain some_ids as uuid[] check (cardinality(value) > 0);

-- What a job is. The enqueue writes it once. There is one partition for each day of ids, so that old days can be dropped.
create table job (
  id              uuid not null primary key,
  lane            int not null,
  max_attempts    allowed_attempts not null,
  scheduled_at    timestamptz, -- null: at once
  expires_at      timestamptz, -- null: 30 days after its creation, which is in the id
  idempotency_key text,
  partition_key   text,
  traceparent     text,
  tags            text[],
  payload         payload_object not null
) partition by range (id);
create table job_default partition of job default;

-- pending and due. A job gets a new `seq` whenever it becomes ready, so dead rows lie before live ones.
create table ready (
  seq     bigint not null,
  id      uuid not null,
  lane    int not null,
  attempt smallint not null default 0,
  abandonments smallint not null default 0
) with (
  -- Every claim leaves dead rows. With a small threshold vacuum keeps up at any size of the backlog.
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
  autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0
);
create sequence ready_seq;
create unique index ready_in_order on ready (lane, seq);
create unique index ready_by_id on ready (id);

-- pending and due later: a delay or a backoff.
create table scheduled (
  run_at  timestamptz not null,
  id      uuid not null,
  lane    int not null,
  attempt smallint not null default 0,
  abandonments smallint not null default 0
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index scheduled_in_order on scheduled (run_at);
create unique index scheduled_by_id on scheduled (id);

-- processing: one row for each claimed batch and lane. A settle or extend must show the lease's key (lease-key.sql). The
-- key is not unique: extending some jobs of a lease splits them off under the same key.
create table lease (
  lock_order bigint generated always as identity, -- statements that lock several rows of one key lock them in this order
  key        uuid not null,
  deadline   timestamptz not null,
  started_at timestamptz not null,
  lane       int not null,
  worker     text,
  ids        some_ids not null, -- sorted
  attempts   smallint[], -- null: the first attempt of each
  abandonments    smallint[] -- null: none of them
) with (
  toast_tuple_target = 8160, -- a batch of 100 stays in the row
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
create sequence lease_generation;
create sequence claim_count; -- decides when claims advance the cursors
create index lease_by_key on lease (key);
create index lease_by_deadline on lease (deadline);

-- completed: one packed row for each settled batch and lane. Rows are split by the first 32 bits of their ids, which
-- change every 65 seconds, so that a short index scan finds one job. Partitioned by day, as `job` is.
create table done (
  hi_id       uuid not null,
  lo_id       uuid not null,
  started_at  timestamptz not null,
  finished_at timestamptz not null,
  lane        int not null,
  ids         some_ids not null, -- sorted, from lo_id to hi_id
  attempts    smallint[]
) partition by range (hi_id);
create index done_by_id on done (hi_id, lo_id);
create table done_default partition of done default;

-- The outputs of completed jobs. Most jobs have none.
create table output (
  id     uuid not null primary key,
  output jsonb not null
);

-- dead, discarded, cancelled.
create table closed (
  id         uuid not null primary key,
  status     text not null check (status in ('dead', 'discarded', 'cancelled')),
  reason     text check (reason in ('exhausted', 'fatal', 'expired', 'abandoned')),
  closed_at  timestamptz not null,
  started_at timestamptz,
  lane       int not null,
  attempt    smallint not null,
  abandonments    smallint not null,
  check ((status = 'cancelled') = (reason is null))
);
create index closed_by_status on closed (status, id);

-- Every attempt that did not complete, with its error.
create table failed_attempt (
  id         uuid not null,
  attempt    smallint not null,
  started_at timestamptz not null,
  failed_at  timestamptz not null,
  message    text not null check (length(message) <= 4000),
  detail     jsonb -- { stack, causes: [{ message, stack }] } of what a handler threw; about 8 KB at most
);
create index failed_attempt_by_id on failed_attempt (id, failed_at);

create table job_tag (
  tag text not null,
  id  uuid not null,
  primary key (tag, id)
);
create index job_tag_by_id on job_tag (id);

-- Days whose partitions were dropped. A row stays until everything else that belonged to their jobs is pruned.
create table dropped_day (
  day     date primary key,
  next_id uuid not null -- pruned up to here
);

-- Expiry times that a producer chose. All others follow from the id. A row may outlive its job; the reaper removes it.
create table expiry (
  expires_at timestamptz not null,
  id         uuid not null
);
create index expiry_in_order on expiry (expires_at);

create table idempotency (
  key_hash    uuid primary key, -- half of the key's SHA-256
  id          uuid not null,
  fingerprint bigint not null, -- tells the same request from another one with the same key
  expires_at  timestamptz not null
);
create index idempotency_by_expiry on idempotency (expires_at);

-- The books. Each statement that moves jobs appends one row for each lane, so nobody waits for a counter, and a rollback
-- removes its entries. fold_ledger adds them up in `tally`: one total for each lane, and one row for each minute of the
-- last day.
create table ledger (
  at        timestamptz not null default now(),
  lane      int not null,
  enqueued  int,
  pending   int, -- change of ready + scheduled
  scheduled int, -- change of scheduled alone
  leased    int, -- change of processing
  completed int,
  failed    int, -- attempts, not jobs
  dead      int,
  discarded int,
  cancelled int,
  expired   int, -- dead because they expired; they count as dead too
  processing_seconds real, -- of the completed jobs together, from claim to settle
  waiting_seconds    real[] -- for each job that was claimed for the first time: from when it was due to its claim
) with (
  toast_tuple_target = 8160, -- the times of a thousand jobs stay in the row
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
create table tally (
  minute    timestamptz not null, -- '-infinity': the total
  lane      int not null,
  enqueued  bigint not null,
  pending   bigint not null,
  scheduled bigint not null,
  leased    bigint not null,
  completed bigint not null,
  failed    bigint not null,
  dead      bigint not null,
  discarded bigint not null,
  cancelled bigint not null,
  expired   bigint not null,
  primary key (minute, lane)
);

-- Histograms of how long jobs waited for their first claim, and how long they were processed.
create table duration (
  lane    int not null,
  measure text not null check (measure in ('waiting', 'processing')),
  bucket  smallint not null, -- how many of duration_bounds() it reached
  jobs    bigint not null,
  seconds float8 not null,
  primary key (lane, measure, bucket)
);

-- A paused queue or type: its lanes are not chosen.
create table pause (
  kind text not null check (kind in ('queue', 'type')),
  name text not null,
  since timestamptz not null default now(),
  primary key (kind, name)
);

-- The cursors, and what the last advance read. The newest row counts: an advance inserts the next row and deletes the one
-- that it read. So no row that every claim reads is updated, and dead rows lie before the newest one.
create table cursors (
  id            bigint generated always as identity primary key,
  cursor_seqs          bigint[] not null, -- by the lane's number; 0 for lanes past the end
  scheduled_cursor timestamptz not null,
  seq           bigint not null, -- the last one given out at that time
  at            timestamptz not null, -- the clock at that time
  passable_at   timestamptz not null, -- how far the next advance may move scheduled_cursor
  open_writers       text[] not null, -- transactions that may still commit rows up to `seq`
  claims        bigint not null -- claim_count at that time
) with (toast_tuple_target = 8160); -- hundreds of lanes stay in the row
-- A gap: a transaction that was open when cursors passed it, with the positions before. Or one whose own rows lie before
-- the cursor of `scheduled`, because the clock had stepped back (keep_reachable).
create table cursor_gap (
  writer        text primary key,
  cursor_seqs          bigint[], -- null: no cursor of a lane passed it
  scheduled_cursor timestamptz not null
);

-- How far the check for unreachable jobs has come in each table (check_reach).
create table sweep (
  table_name text primary key,
  page       bigint not null
);

-- What a producer asks for. Null stands for the default.
create type new_job as (
  type            text,
  payload         jsonb,
  queue           text,
  priority        smallint,
  max_attempts    smallint,
  delay_seconds   float8,
  scheduled_at    timestamptz,
  expires_at      timestamptz,
  idempotency_key text,
  partition_key   text,
  traceparent     text,
  tags            text[]
);

-- The lanes of one priority that have work, the lane with the oldest job first. Each array has one entry for each lane.
create type lane_level as (
  priority    smallint,
  lanes       int[],
  types       text[],
  oldest_seqs bigint[],  -- the seq of the lane's oldest job
  needs_quota boolean[], -- the type has limits, or a breaker that is open or closing (limits.sql)
  group_sizes smallint[] -- above 0: a lane of isolated jobs, which are claimed in groups of this size
);

-- Jobs of one lane that a claim has locked in `ready`. All arrays but `tids` are in the order of the ids.
create type locked_jobs as (
  tids         tid[],
  ids          uuid[],
  seqs         bigint[],
  last_seq     bigint,
  attempts     smallint[], -- counting the one that begins now; null: the first attempt of each
  abandonments smallint[], -- null: none of them
  retried_ids  uuid[]      -- those that were attempted before
);

-- Jobs of one lane that a claim has removed from `ready`: what becomes one lease and one entry of the answer.
create type taken_jobs as (
  lane         int,
  type         text,
  priority     smallint,
  ids          uuid[],
  seqs         bigint[],
  attempts     smallint[],
  abandonments smallint[],
  jobs         json -- as the answer has them
);

-- What a claim has taken so far, and how much it may still take.
create type claim_batch as (
  at           timestamptz, -- the clock when the claim began to take jobs
  jobs_left    int,         -- how many jobs it may still take; 0: the claim is full
  bytes_left   bigint,      -- the same for the bytes of payloads
  has_more     boolean,     -- another claim may find more jobs
  last_seq     bigint,      -- of the jobs that were taken last
  some_expired boolean,     -- expired jobs were met and buried, so the same lanes have to be looked at again
  is_probe     boolean,     -- the job is the probe of an open breaker
  trial_type   text,        -- the type whose breaker counts these jobs as its probe or its step
  taken        taken_jobs[] -- null: nothing yet
);

-- A job that has left its lease, on its way to its next table.
create type settled_job as (
  id           uuid,
  lane         int,
  attempt      smallint,
  abandonments smallint,
  started_at   timestamptz,
  outcome      text,
  output       jsonb,
  message      text,
  detail       jsonb,
  seconds      float8,
  request_index bigint -- its place among the ids that settle() was called with; null: no caller named it
);


-- The state of limits and breakers, and a record of each round.

-- For a limited type: which leases count against its concurrency, and how many jobs started when. The newest row counts. A
-- claim of the type inserts the next row under the type's advisory lock, and deletes the one that it read. So no row that
-- others read is updated, and while the database is pinned only the right end of the index is read.
create table limit_state (
  type        text not null,
  id          bigint generated always as identity,
  lease_keys  uuid[] not null,
  started_at  timestamptz[] not null,
  started     int[] not null,
  primary key (type, id)
);

-- A type's circuit breaker. It is open while closed_at is null. After it has closed, it lets jobs through in growing steps.
create table breaker (
  type       text primary key,
  opened_at  timestamptz not null,
  probed_at  timestamptz not null, -- when the last probe was claimed
  closed_at  timestamptz,
  step       smallint default 1, -- how many jobs the next claim may take; null: no limit
  step_lease uuid, -- the claim that took the last step
  probe_id   uuid, -- the last probe; the same job is probed again until it ends
  check (closed_at >= opened_at),
  check (step = 1 or closed_at is not null)
);

create table round (
  id         bigint generated always as identity primary key,
  kind       text not null check (kind in ('drain', 'nudge', 'reap', 'watch')),
  queue      text, -- of a drain
  started_at timestamptz not null,
  ended_at   timestamptz not null,
  claimed    int not null default 0,
  completed  int not null default 0,
  failed     int not null default 0,
  released   int not null default 0,
  lost       int not null default 0, -- settled too late: the lease was lost
  claim_ms   float8, -- the average time of its claims; null: it made none
  reason     text not null, -- why it ended: empty, time, subrequests, error; done
  message    text, -- of an error
  steps      jsonb, -- of a reap or watch round: what each step did, and how long it took
  check (ended_at >= started_at)
);
create index round_by_kind on round (kind, id);

-- Enqueues over HTTP that got a 5xx or were refused for depth. Each isolate writes its count from time to time.
create table enqueue_error (
  at     timestamptz not null default now(),
  errors int not null check (errors > 0)
);
create index enqueue_error_in_order on enqueue_error (at);


-- API keys and the audit log.

create table api_key (
  id                    uuid primary key,
  name                  text not null check (length(name) between 1 and 100),
  role                  text not null check (role in ('producer', 'worker', 'viewer', 'admin')),
  key_hash              bytea not null unique check (octet_length(key_hash) = 32), -- SHA-256 of the whole key
  job_types             text[] check (cardinality(job_types) > 0), -- null: all
  rate_limit_per_second int not null default 1000 check (rate_limit_per_second > 0),
  created_at            timestamptz not null default now(),
  revoked_at            timestamptz,
  last_used_at          timestamptz, -- exact to a minute
  check (job_types is null or role = 'producer')
);

create table audit (
  id     bigint generated always as identity primary key,
  at     timestamptz not null default now(),
  actor  text not null,
  action text not null,
  target text not null,
  before jsonb,
  after  jsonb
);

create function refuse_change() returns trigger
language plpgsql as $$
begin
  raise exception using errcode = 'insufficient_privilege',
    message = format('%s is append-only: %s is refused', tg_table_name, lower(tg_op));
end $$;
create trigger audit_is_append_only before update or delete or truncate on audit
for each statement execute function refuse_change();
-- "always": a session with session_replication_role = replica skips ordinary triggers.
alter table audit enable always trigger audit_is_append_only;

-- Roles for Workers. Each migration renews their rights (functions/worker-role.sql).
create table worker_role (
  name text primary key
);


-- Alarms, and the notices that are sent to targets.

create table alarm (
  alarm        text not null,
  queue        text, -- null: all
  job_type     text, -- null: all
  version      bigint not null, -- a watcher changes only the version that it has read
  phase        text not null check (phase in ('ok', 'pending', 'firing')),
  since        timestamptz not null, -- when the trouble was first seen
  changed_at   timestamptz not null,
  recent       boolean[] not null, -- before it fires: which of the last rounds were bad
  clear_rounds int not null, -- while it fires: how many clearly good rounds in a row
  notified     text not null check (notified in ('ok', 'firing')), -- what the targets were last notified of
  notified_at  timestamptz,
  severity     text not null check (severity in ('critical', 'warning', 'info')),
  value        float8,
  threshold    float8 not null,
  summary      text not null
);
create unique index alarm_by_key on alarm (alarm, queue, job_type) nulls not distinct;

-- One row for each notice and target. The statement that changes the alarm writes it, so a watcher that dies before it
-- delivers loses nothing.
create table delivery (
  seq         bigint generated always as identity primary key,
  id          uuid not null unique, -- the webhook-id, the same for all tries
  target      text not null,
  about       text not null, -- the alarm, its queue and type: a target gets notices about one of these in order
  notice      jsonb not null,
  created_at  timestamptz not null default now(),
  state       text not null default 'pending' check (state in ('pending', 'delivered', 'given_up')),
  tries       int not null default 0, -- a fence: only the latest try may record its result
  next_try_at timestamptz not null default now(), -- during a try: when another deliverer may take it
  ended_at    timestamptz,
  status      int, -- of the last answer
  error       text,
  check ((state = 'pending') = (ended_at is null))
);
create index delivery_due on delivery (next_try_at) where state = 'pending';
create index delivery_in_order on delivery (target, about, seq) where state = 'pending';
create index delivery_ended on delivery (ended_at) where state <> 'pending';

-- The state of a target. Its URL may be a secret, so only its hash is stored. Another URL counts as another target.
create table alarm_target (
  name          text primary key,
  url_hash      text not null,
  gone_since    timestamptz, -- it answered 410
  failing_since timestamptz,
  delivered_at  timestamptz,
  status        int,
  error         text
);

create table alarm_silence (
  alarm text primary key,
  until timestamptz not null
);

-- What the inspection (inspect.sql) found and nobody has repaired yet. At most 100 rows.
create table impossible_state (
  kind    text not null check (kind in ('job', 'lease', 'done')), -- the table
  id      uuid not null, -- of the job; the key of the lease; the highest id of the row of `done`
  what    text not null, -- is wrong with it
  seen_at timestamptz not null default now(), -- first
  primary key (kind, id)
);
$file$)) as line;
commit;

-- functions
begin isolation level read committed read write;
set local search_path to sluice, pg_temp;
select pg_advisory_xact_lock(hashtextextended('sluice.migrate.sluice', 0));
set local lock_timeout = '200ms';
set local client_min_messages = warning;
set local check_function_bodies = off;
select unnest(apply_function_files(
array[$file$functions/advance-cursors.sql$file$,
$file$functions/alarms.sql$file$,
$file$functions/audit.sql$file$,
$file$functions/books.sql$file$,
$file$functions/breaker.sql$file$,
$file$functions/cancel.sql$file$,
$file$functions/check.sql$file$,
$file$functions/choose.sql$file$,
$file$functions/claim.sql$file$,
$file$functions/clock.sql$file$,
$file$functions/deliver.sql$file$,
$file$functions/discard.sql$file$,
$file$functions/enqueue-errors.sql$file$,
$file$functions/enqueue.sql$file$,
$file$functions/extend.sql$file$,
$file$functions/idempotency.sql$file$,
$file$functions/identity.sql$file$,
$file$functions/insert-jobs.sql$file$,
$file$functions/insert-uniform.sql$file$,
$file$functions/inspect.sql$file$,
$file$functions/jobs.sql$file$,
$file$functions/keys.sql$file$,
$file$functions/lanes.sql$file$,
$file$functions/lease-key.sql$file$,
$file$functions/limits.sql$file$,
$file$functions/list.sql$file$,
$file$functions/partitions.sql$file$,
$file$functions/pause.sql$file$,
$file$functions/reach.sql$file$,
$file$functions/reap.sql$file$,
$file$functions/replay.sql$file$,
$file$functions/rounds.sql$file$,
$file$functions/schema-version.sql$file$,
$file$functions/settle-one.sql$file$,
$file$functions/settle.sql$file$,
$file$functions/shown-pairs.sql$file$,
$file$functions/snapshot.sql$file$,
$file$functions/take-alone.sql$file$,
$file$functions/take.sql$file$,
$file$functions/worker-role.sql$file$]::text[],
array['995427736c1e6a3f02d246b619847aafd703cc82ab39f2a4aff735bbda88723d',
'fa5d850807e7025e796d8bbab61b778e06a3d0cdc101a9216ca4d6f16608a0ae',
'f892d79117bfc488bff24b660def85bda9c474830dd5b38f91846f30b91c77a5',
'01030555339160f7b2d9031e385a06ca04233903856d1fdcc766e4f7a923359f',
'61689e39b7f38ea76ae8e274809a9e2e4f92747bd36ec16aaf93f8b4d3e7674f',
'7eef7d8dc5e22c6c447f422bdf6e446b307cc54941473248271db9e08e0a5c78',
'077ac97334d0afeebf1bb1eb904fa167b8adfef7e1467b688b1235e9cf41fa7b',
'bc3a44c60ee64471b75f37fb0e8b206b98465ebf61520bfc7515e7e8d107783c',
'bb248c547c0d3a9dba39a13bcc2fcf1fc2da2e0368da572bd242ef095df40d6b',
'a58165abd869df2a40bb47a17103d062c18c404ba22caa5f74ed03987aca820f',
'47fbc5991220d15371ebc6d340f400737b187b507e71fec47ced58800bfb7652',
'1f6f6f66494b62f61821787d43ee9e18e6379c86acb509da5c63102da3a90f5e',
'45cbf0c2a1b1fe2824194c32dd3c4f79f65538bb4a2a54c516f91e61acaecefd',
'486fb6dfc88a4048257524c549614eeb67e22f9177ef2fddf7b777e51a98f238',
'f0fc932b4d288eaadd4e5a6d46d801aeda71db7d5dc34352ab4ee7c06c3148cc',
'2db634c455c9aa7c6556bce59d0dfecdf0c5852360979c8ca2acfb0deb80d1dd',
'108c9feeae04dab61c38f1404322e02f3625a2521c89f8e7ba34ebb14189af32' || ' on ' || current_setting('server_version_num')::int / 10000,
'2f0e1334c144237a6f57fe22ee8090d8027d6c39ea87c78459de691e499ab573',
'13512a68da6ee3f706abdface65694382b596f56c74cfd441a474cd097528109',
'ee2240f271b26fa4f980f52de1963edd4c6b07abbe25388f92ae7e5646b95e5a',
'2e72a98eaf39bb343a669e78fbe366015c91beadfbb8f48513b1ec0157fdd382',
'c5639a1608097784ac457337be56b52e0ceb9470053338db51a757004550f694',
'cce62424f0ce1c1f5410dac305c5a056025b99975972ebe7662e1377cfc817c6',
'417f597a9f6ab8b54806d48a2c802a4c028cfe747d2e95c11bc8149009b4e431',
'2fd3062c6d867df46d3ad2419aee2ba8897462c1915cde2d1c4f9e22a9fcac34',
'01d636efc1053e4f3407a160d351068f1ee94418f8f0e90bbb6fb8f4efa85781',
'6528c9b81916fe2348a3b83022c9fef1a512199c5e0a082cc1c6287ddbfbaa44',
'c8d8ddbbd4ff06c03cff481f32f82b8adcfb51a21ba0c20de7f62ae6334bbb9f',
'1fde9140627e3efb0b4b7d6665afe6d435fabe79cb0e135dbb6af22f2c9a9ebc',
'c3971085361c07d870300a55d9b3df9cd4ece93363bfd9f4e32b20b5b3179522',
'b4a1aec311bbfcb3b874be043e303de5c0747e1aa28ceb6d50f496169320cab0',
'762143462111d1f0f0d7636520f9c63023219abd2f2bbbeb7c0cc543720830d6',
'5947fc1cc51d15868ce6a07893f0aa09c426fba07a3cc6a1127208a92f0fefa2',
'b474bc6948a120e66a1548e5db152300f5b498134885802307826966b69757f7',
'9959b213b4197a3e86fe94d7c866cb3c90234b29ab630b90e6180fc75dd56324',
'32cb04bf3a71a880c663b78e0a3b579d710653c7b45ab6e31b6ebe769a7f7ea6',
'3e3ad3266b57106177ccfea0c8f74d6ed176138c16738f1c24b17b6b45d21c76',
'37977ae2d4d0c2725765c5b86c744b7ece6ff4682ea3de816eedc83e5511a162',
'b92ed46483f79e119c52325848814f39fc11cc5a448db8bc0c7b5d31aafb0a58',
'26fd8bb0a58ab366431c06e1c1395cbfe67bcccc7ea17531e0034fca0b847a13']::text[],
array[$file$-- advance_cursors: moves the cursors to the right, past rows that are gone. It never passes a row that is there or may
-- still appear.
--
-- A claim reads a lane from its cursor on, so a row that the cursor has passed is never found again. And a transaction
-- may take seq 100, stay open while seq 200 is committed and claimed, and commit only after that.
--
-- Invariant: in every snapshot, a row of `ready` that lies before its lane's cursor, or can come to lie there by the
-- commit of its owner, belongs to a transaction that has a gap in which the cursor stood before the row.
--
-- 1. Whoever inserts into `ready` holds its RowExclusiveLock from before nextval until its transaction ends.
-- 2. An advance first reads the last seq that was given out, then the open writers, which are the holders of that lock.
--    It keeps both with the cursors. So the owner of any seq up to there is among the open writers or has ended.
-- 3. For each of those open writers, the next advance finds one of two things. It has ended: then the fresh snapshot of
--    the next statement sees all that it wrote. Or it is still open: then the advance writes a gap for it, with the
--    place where the cursors stood.
-- 4. Cursors and gaps are rows of one transaction: a claim sees both or neither, and a rollback takes both back.
-- 5. When the owner of a gap has ended, its rows behind the cursors get a new seq: what is committed late gets a late
--    place.
--
-- The cursor of `scheduled` follows the same rules with times in place of seqs. But a clock can step back, so a later
-- writer may have an earlier time:
--
-- 6. Whoever writes to `scheduled` reads the newest cursors after that, so while it holds the lock. Where it has written
--    a run_at before their `at`, it writes a gap of its own beside the row (keep_reachable).
-- 7. Advance n keeps with its open writers how far the next advance may go: the earlier of its own `at` and the `at` of
--    the advance before. Whoever takes the lock after the open writers were read has seen one of these two, or a later
--    one. So what it writes before that time has a gap, and what it writes after that time is not passed.
-- 8. Advance n + 1 passes no further. A writer that it cannot see yet is among the open writers and gets a gap by 3, or
--    has one already.
-- 9. `at` is the clock and goes back with it, and the cursor goes back with `at`: later writers have nothing to mark.
-- 10. When the owner of a gap has ended, its rows behind the cursor become ready if they are due. The others are not
--     behind it any more, because the cursor is never ahead of the clock.
--
-- This needs statements that each take a new snapshot, so READ COMMITTED. It also needs a transaction that has written
-- nothing yet: its own rows would count as there and then be rolled back. A writer under another isolation level may
-- read cursors that are too old for 7. That takes a step of the clock as well, and check_reach finds it.

-- Fails where a role or a database has another isolation level as its default: what relies on fresh snapshots would
-- be wrong without a word. The driver answers a serialization failure by a second try that names the level.
create or replace function need_read_committed() returns void
language plpgsql as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'serialization_failure', message = 'this needs READ COMMITTED';
  end if;
end $$;

create or replace function advance_cursors(p_late_rows int default 1000) returns void
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_last             cursors%rowtype;
  v_seq              bigint;
  v_at               timestamptz;
  v_open_writers     text[];
  v_ended_writers    text[]; -- of gaps
  v_cursor_seqs      bigint[] := '{}';
  v_scheduled_cursor timestamptz := '-infinity';
  v_passable_at      timestamptz := '-infinity';
begin
  perform need_read_committed();
  if pg_current_xact_id_if_assigned() is not null
     or not pg_try_advisory_xact_lock(hashtextextended('sluice.advance.' || current_schema(), 0)) then
    return;
  end if;

  -- Not the sequence's last_value, which is 1 before anything was given out.
  v_seq := coalesce(pg_sequence_last_value('ready_seq'), 0);
  v_at := clock_timestamp();
  v_open_writers := open_writers(); -- after v_seq: see 2

  select * into v_last from cursors order by id desc limit 1;
  if found then
    insert into cursor_gap (writer, cursor_seqs, scheduled_cursor)
    select writer, v_last.cursor_seqs, v_last.scheduled_cursor
    from unnest(v_open_writers) as writer
    -- a prepared transaction has lost the name under which it was seen
    where writer = any(v_last.open_writers) or (writer like '-1/%')
    on conflict (writer) do update -- the cursor may have gone back since
    set scheduled_cursor = excluded.scheduled_cursor
    where excluded.scheduled_cursor < cursor_gap.scheduled_cursor;
    -- Before the statements that look at rows, so that these see all that the writers wrote.
    v_ended_writers := array(select writer from cursor_gap where writer <> all(v_open_writers));

    v_cursor_seqs := advanced_seqs(v_last.cursor_seqs, v_last.seq);
    v_passable_at := least(v_last.at, v_at);
    v_scheduled_cursor := least(
      v_passable_at,
      coalesce(
        (select run_at from scheduled
         where run_at >= v_last.scheduled_cursor and run_at < v_last.passable_at
         order by run_at limit 1),
        v_last.passable_at));
    if v_ended_writers <> '{}' then
      perform close_gaps(v_last, v_at, v_open_writers, v_ended_writers, p_late_rows);
    end if;
    delete from cursors where id = v_last.id; -- there is no other; `<=` would walk over all the dead ones
  end if;
  insert into cursors (cursor_seqs, scheduled_cursor, seq, at, passable_at, open_writers, claims)
  values (v_cursor_seqs, v_scheduled_cursor, v_seq, v_at, v_passable_at, v_open_writers,
          coalesce(pg_sequence_last_value('claim_count'), 0));
end $$;

-- The other transactions that may have written to `ready` or `scheduled`, by their virtual transaction ids.
create or replace function open_writers() returns text[]
language plpgsql as $$
begin
  return array(
    select distinct virtualtransaction
    from pg_locks
    where locktype = 'relation'
      and database = (select oid from pg_database where datname = current_database())
      and relation in ('ready'::regclass, 'scheduled'::regclass)
      and mode = 'RowExclusiveLock'
      and pid is distinct from pg_backend_pid());
end $$;

-- Each lane's cursor, moved to the oldest row that is there; or past p_last_seq, where there is none up to it. As an
-- argument the array is decompressed once, not for each lane.
create or replace function advanced_seqs(p_cursor_seqs bigint[], p_last_seq bigint) returns bigint[]
language plpgsql as $$
begin
  return array(
    select case when lane.lane is null then 0 else coalesce(oldest.seq, p_last_seq + 1) end
    from generate_series(1, (select max(lane) from lane)) as numbered(lane)
    left join lane using (lane)
    left join lateral (
      select seq
      from ready
      where ready.lane = lane.lane and seq >= coalesce(p_cursor_seqs[lane.lane], 0) and seq <= p_last_seq
      order by seq
      limit 1
    ) as oldest on true
    order by numbered.lane);
end $$;

-- The owners of these gaps have ended. The rows that they left behind the cursors become ready again, at a new place, at
-- most p_late_rows of each table. The gaps stay until nothing is left in them but what is not due (see 10).
create or replace function close_gaps(
  p_cursors cursors, p_at timestamptz, p_open_writers text[], p_ended_writers text[], p_late_rows int
) returns void
language plpgsql as $$
declare
  v_lanes            int[]; -- whose cursor has moved since
  v_from_seqs        bigint[];
  v_to_seqs          bigint[];
  v_scheduled_cursor timestamptz := (select min(scheduled_cursor) from cursor_gap where writer = any(p_ended_writers));
begin
  select array_agg(lane), array_agg(from_seq), array_agg(to_seq)
  into v_lanes, v_from_seqs, v_to_seqs
  from (
    select lane, min(coalesce(from_seq, 0)) as from_seq, to_seq
    from cursor_gap
    cross join lateral rows from (unnest(cursor_gap.cursor_seqs), unnest(p_cursors.cursor_seqs)) with ordinality
      as of_lane(from_seq, to_seq, lane)
    where writer = any(p_ended_writers) and cursor_gap.cursor_seqs is not null
    group by lane, to_seq
  ) as passed
  where from_seq < to_seq;

  perform renew_seqs(v_lanes, v_from_seqs, v_to_seqs, p_late_rows);
  perform promote_passed(v_scheduled_cursor, p_cursors.scheduled_cursor, p_at, p_late_rows);

  -- A prepared transaction may be the owner under its new name.
  if not exists (select from unnest(p_open_writers) as writer where writer like '-1/%')
     and not exists (
       select from scheduled
       where run_at >= v_scheduled_cursor and run_at < p_cursors.scheduled_cursor and run_at <= p_at)
     and not exists (
       select
       from unnest(v_lanes, v_from_seqs, v_to_seqs) as passed(lane, from_seq, to_seq)
       cross join lateral (
         select from ready
         where ready.lane = passed.lane and seq >= passed.from_seq and seq < passed.to_seq
         order by seq
         limit 1
       ) as late) then
    delete from cursor_gap where writer = any(p_ended_writers);
  end if;
end $$;

-- Gives rows of `ready` that the cursors have passed a new place, at most p_limit. A row that is locked is being claimed.
create or replace function renew_seqs(p_lanes int[], p_from_seqs bigint[], p_to_seqs bigint[], p_limit int) returns void
language plpgsql as $$
begin
  with late as materialized (
    select late.tid
    from unnest(p_lanes, p_from_seqs, p_to_seqs) as passed(lane, from_seq, to_seq)
    cross join lateral (
      select ctid as tid
      from ready
      where ready.lane = passed.lane and seq >= passed.from_seq and seq < passed.to_seq
      order by seq
      limit p_limit
      for update skip locked
    ) as late
    limit p_limit
  )
  update ready set seq = nextval('ready_seq') where ctid = any(array(select tid from late));
end $$;

-- The same for rows of `scheduled`, as far as they are due.
create or replace function promote_passed(p_from timestamptz, p_to timestamptz, p_now timestamptz, p_limit int)
returns void
language plpgsql as $$
begin
  with late as materialized (
    select ctid as tid
    from scheduled
    where run_at >= p_from and run_at < p_to and run_at <= p_now
    order by run_at
    limit p_limit
    for update skip locked
  ),
  removed as (
    delete from scheduled where ctid = any(array(select tid from late)) returning id, lane, attempt, abandonments
  ),
  booked as (
    insert into ledger (lane, scheduled) select lane, -count(*) from removed group by lane
  )
  insert into ready (seq, id, lane, attempt, abandonments)
  select nextval('ready_seq'), id, lane, attempt, abandonments from removed;
end $$;

-- Whoever has written to `scheduled` calls this with the earliest run_at of what it wrote (see 6). There is something to do
-- only after the clock has stepped back.
create or replace function keep_reachable(p_run_at timestamptz) returns void
language plpgsql strict as $$
begin
  if p_run_at < (select at from cursors order by id desc limit 1) then
    insert into cursor_gap as gap (writer, scheduled_cursor) values ('xid/' || pg_current_xact_id(), p_run_at)
    on conflict (writer) do update set scheduled_cursor = least(gap.scheduled_cursor, excluded.scheduled_cursor);
  end if;
end $$;

-- For use after rows of `ready` or `scheduled` were changed by hand: the next claims read all rows again.
create or replace function reset_cursors() returns void
language plpgsql
set search_path from current
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('sluice.advance.' || current_schema(), 0));
  delete from cursors;
end $$;
$file$,
$file$-- Alarms: reading them, and how a watcher changes them.

-- One row with the alarms, the state of the targets, and the silences that have not ended.
create or replace function read_alarms(out alarms jsonb, out targets jsonb, out silences jsonb)
language sql stable
security definer
set search_path from current
as $$
  select
    (select coalesce(jsonb_agg(to_jsonb(known) order by alarm, queue, job_type), '[]') from alarm as known),
    (select coalesce(jsonb_agg(to_jsonb(target) order by name), '[]')
     from (select name, url_hash, gone_since, failing_since, delivered_at, alarm_target.status, alarm_target.error,
                  coalesce(pending, 0) as pending
           from alarm_target
           full join (select target as name, count(*) as pending from delivery where state = 'pending' group by target)
             as waiting using (name)) as target),
    (select coalesce(jsonb_agg(to_jsonb(alarm_silence) order by alarm), '[]') from alarm_silence where until > now())
$$;

-- Applies a watcher's changes, and writes a delivery for each notice and each target that is switched on. Another watcher
-- may have been faster: a change applies only to the version that it was made from, and a change that does not apply sends
-- no notice. Returns the keys of the changes that applied.
create or replace function change_alarms(p_changes jsonb, p_targets jsonb)
returns table (alarm text, queue text, job_type text)
language plpgsql
security definer
set search_path from current
set enable_nestloop = off -- the planner expects a hundred changes; when a drain stops there may be one for each queue
set jit = off
as $$
#variable_conflict use_column
begin
  -- One watcher at a time, so that two that change the same alarms in another order cannot deadlock. The statement below
  -- sees what the watcher before has committed.
  perform pg_advisory_xact_lock(hashtextextended('sluice.alarms.' || current_schema(), 0));
  return query
  with change as materialized (
    select *
    from jsonb_to_recordset(p_changes) as change(
      alarm text, queue text, job_type text, version bigint, phase text, since timestamptz, changed_at timestamptz,
      recent boolean[], clear_rounds int, notified text, notified_at timestamptz, severity text, value float8,
      threshold float8, summary text, about text, notice jsonb)
  ),
  added as (
    insert into alarm (alarm, queue, job_type, version, phase, since, changed_at, recent, clear_rounds,
                       notified, notified_at, severity, value, threshold, summary)
    select alarm, queue, job_type, 1, phase, since, changed_at, recent, clear_rounds,
           notified, notified_at, severity, value, threshold, summary
    from change where version is null
    on conflict do nothing
    returning alarm, queue, job_type
  ),
  changed as (
    update alarm as known
    set version = known.version + 1, phase = change.phase, since = change.since, changed_at = change.changed_at,
        recent = change.recent, clear_rounds = change.clear_rounds,
        notified = change.notified, notified_at = change.notified_at,
        severity = change.severity, value = change.value, threshold = change.threshold, summary = change.summary
    from change
    where known.alarm = change.alarm
      and coalesce(known.queue, '') = coalesce(change.queue, '')
      and coalesce(known.job_type, '') = coalesce(change.job_type, '')
      and known.version = change.version
    returning known.alarm, known.queue, known.job_type
  ),
  applied as (
    select * from added union all select * from changed
  ),
  delivered_later as (
    insert into delivery (id, target, about, notice)
    select new_id(), target.name, change.about, change.notice
    from applied
    join change on change.alarm = applied.alarm
      and coalesce(change.queue, '') = coalesce(applied.queue, '')
      and coalesce(change.job_type, '') = coalesce(applied.job_type, '')
    cross join jsonb_to_recordset(p_targets) as target(name text, url_hash text)
    where jsonb_typeof(change.notice) = 'object'
      and not exists (
        select from alarm_target as known
        where known.name = target.name and known.url_hash = target.url_hash and known.gone_since is not null)
  )
  select * from applied;
end $$;

-- Silences an alarm until a time. A time in the past ends the silence.
create or replace function silence_alarm(p_actor text, p_alarm text, p_until timestamptz) returns void
language plpgsql
security definer
set search_path from current
as $$
declare
  v_before timestamptz := (select until from alarm_silence where alarm = p_alarm and until > now());
begin
  if p_until not between timestamptz '1970-01-01 00:00+00' and timestamptz '9999-12-31 23:59:59.999+00' then
    perform refuse('until: not between 1970 and 9999');
  end if;
  insert into alarm_silence as known (alarm, until) values (p_alarm, p_until)
  on conflict (alarm) do update set until = excluded.until;
  perform write_audit(p_actor, 'silence', 'alarm ' || p_alarm,
                      jsonb_build_object('until', v_before), jsonb_build_object('until', p_until));
end $$;

-- Audits that somebody sent a test notice, and how each target answered.
create or replace function audit_test_notice(p_actor text, p_targets jsonb) returns void
language sql
security definer
set search_path from current
as $$
  select write_audit(p_actor, 'test alarms', 'alarms', null, jsonb_build_object('targets', p_targets))
$$;
$file$,
$file$-- audit: who changed what, with the state before and after. The function that makes a change also writes its entry, so
-- neither can be there without the other.

create or replace function write_audit(p_actor text, p_action text, p_target text, p_before jsonb, p_after jsonb)
returns void
language sql
set search_path from current
as $$
  insert into audit (actor, action, target, before, after) values (p_actor, p_action, p_target, p_before, p_after)
$$;
$file$,
$file$-- The books: enqueued = completed + dead + discarded + cancelled + pending + leased, for each type, in every snapshot.

-- Adds entries of the ledger to a row for each minute and lane, and to the lane's total. An advisory lock lets one fold
-- run at a time. Entries that are not committed yet stay for the next fold, so totals plus ledger are exact in every
-- snapshot.
create or replace function fold_ledger(p_limit int) returns int
language plpgsql
security definer
set search_path from current
as $$
declare
  v_folded tally[];
  v_rows   int;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('sluice.fold.' || current_schema(), 0)) then
    return 0;
  end if;
  with removed as (
    delete from ledger where ctid = any(array(select ctid from ledger limit p_limit)) returning *
  ),
  timed as (
    insert into duration as known (lane, measure, bucket, jobs, seconds)
    select lane, measure, width_bucket(seconds, duration_bounds()), sum(jobs), sum(jobs * seconds)
    from (
      select lane, 'processing', completed, greatest(processing_seconds, 0)::float8
      from removed where processing_seconds is not null
      union all
      select lane, 'waiting', 1, greatest(each_seconds, 0)::float8
      from removed cross join unnest(waiting_seconds) as each_seconds
    ) as durations(lane, measure, jobs, seconds)
    group by 1, 2, 3
    on conflict (lane, measure, bucket) do update
    set jobs = known.jobs + excluded.jobs, seconds = known.seconds + excluded.seconds
  ),
  summed as (
    select minute is null as is_total, count(*) as entries,
           row(coalesce(minute, '-infinity'), lane, coalesce(sum(enqueued), 0), coalesce(sum(pending), 0),
               coalesce(sum(scheduled), 0), coalesce(sum(leased), 0), coalesce(sum(completed), 0), coalesce(sum(failed), 0), coalesce(sum(dead), 0),
               coalesce(sum(discarded), 0), coalesce(sum(cancelled), 0), coalesce(sum(expired), 0))::tally as entry
    from (
      -- The clock may have stepped back. A minute must not lie ahead of it.
      select date_bin('1 minute', least(at, clock_timestamp()), '2000-01-01 00:00+00') as minute, * from removed
    ) as entries
    group by grouping sets ((minute, lane), (lane))
  )
  select array_agg(entry), coalesce(sum(entries) filter (where is_total), 0) into v_folded, v_rows from summed;
  perform add_to_tally(v_folded);
  return v_rows;
end $$;

-- After the clock has stepped back, minutes that lie ahead of it are added to the current one. Otherwise they would
-- count as recent until the clock has passed them.
create or replace function bring_back_minutes(p_ahead timestamptz) returns int
language plpgsql as $$
declare
  v_minute timestamptz := date_bin('1 minute', clock_timestamp(), '2000-01-01 00:00+00');
  v_folded tally[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('sluice.fold.' || current_schema(), 0)) then
    return 0;
  end if;
  with ahead as (
    delete from tally where minute > p_ahead returning *
  ),
  summed as (
    select row(v_minute, lane, sum(enqueued), sum(pending), sum(scheduled), sum(leased), sum(completed), sum(failed),
               sum(dead), sum(discarded), sum(cancelled), sum(expired))::tally as entry
    from ahead group by lane
  )
  select array_agg(entry) into v_folded from summed;
  perform add_to_tally(v_folded);
  return coalesce(cardinality(v_folded), 0);
end $$;

-- The upper bounds of the histogram buckets, in seconds. One more bucket holds everything longer.
create or replace function duration_bounds() returns float8[]
language sql immutable parallel safe
return array[0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400];

create or replace function add_to_tally(p_entries tally[]) returns void
language sql as $$
  insert into tally as known
  select * from unnest(p_entries)
  on conflict (minute, lane) do update
  set enqueued = known.enqueued + excluded.enqueued, pending = known.pending + excluded.pending,
      scheduled = known.scheduled + excluded.scheduled,
      leased = known.leased + excluded.leased, completed = known.completed + excluded.completed,
      failed = known.failed + excluded.failed, dead = known.dead + excluded.dead,
      discarded = known.discarded + excluded.discarded, cancelled = known.cancelled + excluded.cancelled,
      expired = known.expired + excluded.expired
$$;

create or replace view books as
select queue, type, priority,
       coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending,
       coalesce(sum(scheduled), 0) as scheduled,
       coalesce(sum(leased), 0) as leased, coalesce(sum(completed), 0) as completed,
       coalesce(sum(failed), 0) as failed, coalesce(sum(dead), 0) as dead,
       coalesce(sum(discarded), 0) as discarded, coalesce(sum(cancelled), 0) as cancelled,
       coalesce(sum(expired), 0) as expired
from lane
left join (
  select lane, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired
  from tally where minute = '-infinity'
  union all
  select lane, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired from ledger
) as entries using (lane)
group by queue, type, priority;
$file$,
$file$-- Circuit breakers. Whoever settles a failed attempt judges whether its type's breaker opens (core/policy/attempt-end.ts).
-- The claim enforces it (quota_of).
--
-- An open breaker lets one job a minute through, the probe. A probe that completes closes the breaker. A type that has
-- just failed does not get its whole backlog at once: the next claims take 4, 16 and 64 jobs, and then all. A step begins
-- when all jobs of the step before have ended and the breaker was not opened again. The steps end with the window in any
-- case, since a step of long handlers would hold the type up.
--
-- Probes and steps take the jobs that were tried most often (take_tried), because these are the likeliest to succeed. If a
-- type works at the second try, a probe that is always some other job's first try would never complete.

-- How far back attempts count, and how long a breaker that has closed lets jobs through by steps.
create or replace function breaker_window() returns interval
language sql immutable
return interval '5 minutes';

-- A probe that lies in the future means that the clock was set back: nobody waits for it.
create or replace function is_probe_due(p_probed_at timestamptz, p_now timestamptz) returns boolean
language sql immutable
return p_probed_at not between p_now - interval '60 s' and p_now;

-- How a type's attempts ended everywhere within the window, and since its breaker last closed. The part of the books that
-- is folded is only known by the minute. That is close enough: an open breaker lets hardly anything through in the minute
-- before it closes.
create or replace function recent_attempts(
  p_type text, out completed bigint, out failed bigint, out is_on_trial boolean
)
language sql stable
security definer
set search_path from current
as $$
  with since as (
    select greatest(now() - breaker_window(),
                    (select closed_at from breaker where type = p_type)) as moment
  )
  select coalesce(sum(entries.completed), 0), coalesce(sum(entries.failed), 0),
         exists (select from breaker where type = p_type and step is not null and closed_at > now() - breaker_window())
  from lane
  join (
    select lane, tally.completed, tally.failed from tally, since where minute >= date_trunc('minute', since.moment)
    union all
    select lane, ledger.completed, ledger.failed from ledger, since where at > since.moment
  ) as entries using (lane)
  where lane.type = p_type
$$;

-- Answers true if the breaker was closed.
create or replace function open_breaker(p_type text) returns boolean
language sql
security definer
set search_path from current
as $$
  with opened as (
    insert into breaker (type, opened_at, probed_at) values (p_type, now(), now())
    on conflict (type) do update
      set opened_at = now(), probed_at = now(), closed_at = null, step = 1, step_lease = null, probe_id = null
    where breaker.closed_at is not null
    returning 1
  )
  select exists (select from opened)
$$;

-- Answers true if the breaker was open.
create or replace function close_breaker(p_type text) returns boolean
language sql
security definer
set search_path from current
as $$
  with closed as (
    update breaker set closed_at = greatest(now(), opened_at), step = 4, step_lease = null, probe_id = null
    where type = p_type and closed_at is null
    returning 1
  )
  select exists (select from closed)
$$;

-- A probe has completed. A puller could say so of any job, so this does not trust its caller: the type is read from the
-- job, and the lease must be younger than the opening of the breaker, since only probes are claimed while it is open. The
-- generation of a lease is the time of its claim, or up to a second before it.
create or replace function close_breaker_by_probe(p_id uuid, p_lease_key uuid) returns boolean
language sql
security definer
set search_path from current
as $$
  select coalesce(bool_or(close_breaker(type)), false)
  from job join lane using (lane) join breaker using (type)
  where job.id = p_id and generation_of(p_lease_key) > extract(epoch from opened_at) * 1000000
$$;

-- How many jobs of a type its breaker lets through now. Null means no bound. It is called under the type's advisory lock,
-- which lasts until the claim has noted what it took (note_trial), so two claims never take the same step.
create or replace function breaker_quota(p_type text, p_now timestamptz, out quota int, out is_probe boolean)
language plpgsql as $$
declare
  v_breaker breaker%rowtype;
begin
  is_probe := false;
  select * into v_breaker from breaker where type = p_type and step is not null;
  if not found then
    return;
  end if;
  if v_breaker.closed_at is null then
    is_probe := is_probe_due(v_breaker.probed_at, p_now);
    quota := is_probe::int;
  elsif v_breaker.closed_at not between p_now - breaker_window() and p_now then
    update breaker set step = null where type = p_type and closed_at is not null;
  elsif exists (select from lease where key = v_breaker.step_lease) then
    quota := 0; -- the step before has not ended
  elsif v_breaker.step > 64 then
    update breaker set step = null where type = p_type and closed_at is not null;
  else
    quota := v_breaker.step;
  end if;
end $$;

-- A claim took a probe or a step. The job of a probe stays the probe until it ends, however many jobs wait before it.
create or replace function note_trial(p_type text, p_lease_key uuid, p_probe uuid) returns void
language sql as $$
  update breaker
  set step_lease = p_lease_key,
      step = case when closed_at is null then 1 else step * 4 end,
      probed_at = case when closed_at is null then clock_timestamp() else probed_at end,
      probe_id = case when closed_at is not null then null
                      when exists (select from scheduled where id = probe_id) then probe_id
                      when exists (select from ready where id = probe_id) then probe_id
                      else p_probe end
  where type = p_type and step is not null
$$;
$file$,
$file$-- cancel: a pending job is closed and never runs. Answers as answer_with_job does; `applied` is false when the job is not
-- pending. `p_types` are the types that the caller may use, null for all: a job of another type is answered with null, as
-- if it did not exist.
--
-- A cancel and a claim of the same job both delete its row in `ready`. Only one of them can delete it.
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
  -- no row, and the second delete finds the job.
  delete from scheduled where id = p_id returning lane, attempt, abandonments, -1 as scheduled into v_pending;
  if not found then
    delete from ready where id = p_id returning lane, attempt, abandonments, 0 as scheduled into v_pending;
  end if;
  if not found then
    return answer_with_job(p_id, false);
  end if;
  insert into closed (id, status, closed_at, lane, attempt, abandonments)
  values (p_id, 'cancelled', now(), v_pending.lane, v_pending.attempt, v_pending.abandonments);
  insert into ledger (lane, pending, scheduled, cancelled) values (v_pending.lane, -1, v_pending.scheduled, 1);
  return answer_with_job(p_id, true);
end $$;
$file$,
$file$-- What a producer may ask for: the limits of a payload and of a new job's options, for the HTTP API and for SQL alike.
-- Functions with a body of one expression are inlined into their callers, and have to be defined before them.

-- Not a part of fault_of: Postgres inlines no function with a subquery, and without that an enqueue takes four times as long.
create or replace function has_bad_tag(tags text[]) returns boolean
language sql immutable
return array_ndims(tags) > 1
  or exists (select from unnest(tags) as tag where tag is null or length(tag) not between 1 and 63);

-- The size of a payload as Postgres stores it. A compressed one is measured as text instead. Inlined.
create or replace function payload_bytes(payload jsonb) returns int
language sql stable
return case when pg_column_compression(payload) is null then pg_column_size(payload)
            else octet_length(payload::text) end;

-- The size of a payload's JSON text without the spaces that Postgres writes after each colon and comma. They are at most a
-- third of the text, so they are only subtracted where that can decide between allowed and refused.
create or replace function json_bytes(payload jsonb) returns int
language plpgsql immutable as $$
declare
  v_text  text := payload::text;
  v_bytes int := octet_length(v_text);
  v_bare  text; -- the text without its strings: all spaces in it were added by Postgres
begin
  if v_bytes <= 65536 or v_bytes > 98400 then
    return v_bytes;
  end if;
  v_bare := regexp_replace(v_text, '"(?:[^"\\]|\\.)*"', '', 'g');
  return v_bytes - (length(v_bare) - length(replace(v_bare, ' ', '')));
end $$;

-- A payload has at most 64 KiB of JSON text. The text is in UTF-8, without spaces, and numbers are written out as Postgres
-- does it: 1e300 is a one and 300 zeros. A claim sends this text to a worker. src/edge/http/codec/payload.ts measures the
-- same. Most payloads are judged by their stored size, without being written out. The text of a small one is at most 25
-- times that size (1e255 is stored in 12 bytes), that of a very large one at least a sixth of it ("0," is stored in 12
-- bytes). Only numbers that no double holds can be longer.
create or replace function payload_fault_of(payload jsonb) returns text
language sql stable -- as pg_column_size is: declared immutable it could not be inlined
return case
  when jsonb_typeof(payload) <> 'object' then 'payload: must be a JSON object'
  when payload_bytes(payload) > 2600
    and (payload_bytes(payload) > 393300 or json_bytes(payload) > 65536) then 'payload: must not be larger than 64 KiB'
end;

-- What is wrong with a new job's options; null: nothing. The limits are those of src/core/job-options.ts. lane_of checks
-- the names. A delay and a time have the same limit of 100 years, since they are two ways to say the same. So every time
-- that follows from them (a default expiry) has a year of four digits, which all clients can read.
create or replace function fault_of(job new_job) returns text
language sql stable
return case
  when job.priority not between 0 and 9 then 'priority: must be between 0 and 9'
  when job.max_attempts not between 1 and 20 then 'max_attempts: must be between 1 and 20'
  when job.delay_seconds is not null and job.scheduled_at is not null
    then 'scheduled_at: must not be given together with delay_seconds'
  when job.delay_seconds not between 0 and 3155760000 then 'delay_seconds: must be between 0 and 100 years'
  when job.scheduled_at not between timestamptz '1970-01-01 00:00+00' and now() + interval '876600 hours'
    then 'scheduled_at: must be after 1970 and within 100 years'
  when job.expires_at <= job.scheduled_at then 'expires_at: must be after scheduled_at'
  when job.expires_at >= timestamptz '10000-01-01 00:00+00' then 'expires_at: must be before the year 10000'
  when length(job.idempotency_key) not between 1 and 255 then 'idempotency_key: must have 1 to 255 characters'
  when length(job.partition_key) not between 1 and 255 then 'partition_key: must have 1 to 255 characters'
  when cardinality(job.tags) > 20 then 'tags: must be at most 20'
  when job.tags is not null and has_bad_tag(job.tags) then 'tags: must be a flat list of texts, each of 1 to 63 characters'
end;

-- A trace context by the rules of the W3C; null if it does not follow them. A header of a later version is kept in the form
-- of version 00, with the parts that all versions have.
create or replace function traceparent_of(header text) returns text
language sql immutable
return case
  when header !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-|$)' or header ~ '^ff' then null
  when substr(header, 4, 32) ~ '^0+$' or substr(header, 37, 16) ~ '^0+$' then null
  when header !~ '^00' then format('00-%s-0%s', substr(header, 4, 49), get_bit(decode(substr(header, 54, 2), 'hex'), 0))
  when length(header) = 55 then header
end;

-- Refuses a batch if one of its jobs has a fault. Otherwise says which options some of its jobs have, so that the caller
-- can leave out the statements that no job needs.
create or replace function check_jobs(
  p_jobs new_job[],
  out have_key boolean, out have_time boolean, out have_expiry boolean, out have_tags boolean,
  out are_of_one_lane boolean
)
language plpgsql as $$
declare
  v_first new_job := p_jobs[1];
  v_fault text;
begin
  select (array_agg(fault) filter (where fault is not null))[1],
         bool_or((job).idempotency_key is not null),
         bool_or((job).delay_seconds > 0 or (job).scheduled_at is not null),
         bool_or((job).expires_at is not null),
         bool_or(cardinality((job).tags) > 0),
         bool_and((job).type = v_first.type and (job).queue is not distinct from v_first.queue
                  and (job).priority is not distinct from v_first.priority)
  into v_fault, have_key, have_time, have_expiry, have_tags, are_of_one_lane
  from (
    select job, coalesce(payload_fault_of(job.payload), fault_of(job)) as fault from unnest(p_jobs) as job
  ) as checked;
  if v_fault is not null then
    perform refuse(v_fault);
  end if;
end $$;

-- What an app may not ask for. The HTTP API refuses the same. The Worker's own function, enqueue_jobs, is granted to no
-- app: through it the canary is enqueued.
create or replace function outside_fault_of(job new_job) returns text
language sql stable
return case
  when job.type like 'sluice.%' then 'type: must not begin with "sluice.", which is reserved'
  when job.expires_at <= now() then 'expires_at: must be in the future'
end;

create or replace function refuse(p_fault text) returns void
language plpgsql as $$
begin
  raise exception using errcode = 'invalid_parameter_value', message = p_fault;
end $$;

-- Whether insert_uniform can store the job: whether it has none of the options that take the long way.
create or replace function is_plain(job new_job) returns boolean
language sql immutable
return row(job.delay_seconds, job.scheduled_at, job.expires_at, job.idempotency_key, job.tags) is null;
$file$,
$file$-- choose: which lanes are next? These functions look into lanes. They lock and write nothing.

-- The lanes of the best priority below p_below that have work, the lane with the oldest job first. Null: no priority
-- has work. Without lanes: another claim took the last jobs of this priority between the two looks.
create or replace function next_level(
  p_queue text, p_types text[], p_below smallint, p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean
) returns lane_level
language plpgsql as $$
declare
  v_level lane_level;
  v_first record;
begin
  -- Goes from the best priority down and stops at the first lane that has work: to look into a lane that has work costs
  -- six times a look into an empty one.
  select chosen.priority, chosen.lane, chosen.type, oldest.seq, chosen.group_size,
         coalesce(p_limits ? chosen.type, false)
           or exists (select from breaker where breaker.type = chosen.type and step is not null) as needs_quota,
         exists (
           select from lane as other
           where queue = p_queue and other.priority = chosen.priority and other.type = any(p_types)
             and other.lane <> chosen.lane) as has_others
  into v_first
  from (
    select lane, type, priority, group_size, coalesce(p_cursor_seqs[lane], 0) as cursor_seq
    from lane
    where queue = p_queue and type = any(p_types) and priority < coalesce(p_below, 10)
      and (p_isolated or group_size = 0)
      and type <> all(array(select name from pause where kind = 'type'))
      and not exists (select from pause where kind = 'queue' and name = p_queue)
    order by priority desc
    offset 0 -- keeps the planner from merging the two queries: the index is searched by cursor_seq as a value
  ) as chosen
  cross join lateral (
    select seq from ready where ready.lane = chosen.lane and seq >= chosen.cursor_seq order by seq limit 1
  ) as oldest
  limit 1;
  if not found then
    return null;
  end if;
  if v_first.has_others then
    return lanes_with_work(p_queue, p_types, v_first.priority, p_limits, p_cursor_seqs, p_isolated);
  end if;
  v_level.priority := v_first.priority;
  v_level.lanes := array[v_first.lane];
  v_level.types := array[v_first.type];
  v_level.oldest_seqs := array[v_first.seq];
  v_level.needs_quota := array[v_first.needs_quota];
  v_level.group_sizes := array[v_first.group_size];
  return v_level;
end $$;

create or replace function lanes_with_work(
  p_queue text, p_types text[], p_priority smallint, p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean
) returns lane_level
language plpgsql as $$
declare
  v_level lane_level;
begin
  select p_priority, array_agg(lane order by seq), array_agg(type order by seq), array_agg(seq order by seq),
         array_agg(needs_quota order by seq), array_agg(group_size order by seq)
  into v_level
  from (
    select lane, type, group_size, coalesce(p_cursor_seqs[lane], 0) as cursor_seq,
           coalesce(p_limits ? type, false)
             or type = any(array(select type from breaker where step is not null)) as needs_quota
    from lane
    where queue = p_queue and priority = p_priority and type = any(p_types)
      and (p_isolated or group_size = 0)
      and type <> all(array(select name from pause where kind = 'type'))
    offset 0
  ) as chosen
  cross join lateral (
    select seq from ready where ready.lane = chosen.lane and seq >= chosen.cursor_seq order by seq limit 1
  ) as oldest;
  return v_level;
end $$;

-- The level without the lanes that must not share a claim with others (take-alone.sql).
create or replace function keep_shared_lanes(p_level lane_level) returns lane_level
language sql stable as $$
  select row(p_level.priority, array_agg(lane order by seq), array_agg(type order by seq), array_agg(seq order by seq),
             array_agg(needs_quota order by seq), array_agg(group_size order by seq))::lane_level
  from unnest(p_level.lanes, p_level.types, p_level.oldest_seqs, p_level.needs_quota, p_level.group_sizes)
    as entry(lane, type, seq, needs_quota, group_size)
  where not needs_quota and group_size = 0
$$;
$file$,
$file$-- claim: takes a batch of due jobs, best priority first and then oldest, and puts them under a lease. It is one call and
-- one round trip. The outcomes of earlier jobs can come along and are settled first.
--
-- Read top down, a claim does this:
--   1. advance the cursors, when they lag (advance-cursors.sql)
--   2. settle the outcomes that came along (settle.sql)
--   3. promote: move jobs that have become due from `scheduled` to `ready`
--   4. fill a batch, one priority after the other:
--      choose the lanes of the next priority that have work (choose.sql), then
--      take jobs that must not share a claim with others (take-alone.sql), or
--      take the oldest jobs of all other lanes (take.sql)
--   5. write one lease for each lane
--
-- Two claims never take the same job: each locks its rows of `ready`, skips what others have locked, and deletes the rows
-- in the transaction that writes the lease. Pausing, limits and breakers choose lanes and never filter rows, so a lane
-- that is not chosen costs nothing.
--
-- The answer is one JSON value, because a row of a dozen columns for each job costs its reader more than all the rest:
--   { settled: [status, …] | null, key, is_probe, is_trial, has_more,
--     leases: [{ type, priority, expires_ms, attempts: […] | null, abandonments: […] | null, seqs: […],
--                jobs: [[id, payload, max_attempts, partition_key, traceparent, tags, errors], …] }, …] | null }

create or replace function claim(
  p_queue           text,
  p_types           text[], -- what the caller can run
  p_limit           int,
  p_lease_seconds   float8,
  p_worker          text default null,
  p_max_bytes       bigint default 4194304, -- of payloads; the first job is claimed whatever its size
  p_limits          jsonb default null, -- { type: { concurrency?, rate?, seconds? } } of the limited types
  p_leases          jsonb default null, -- { type: seconds } of the types whose lease has another length
  p_settle_ids      uuid[] default null, -- these three as in settle()
  p_settle_keys     uuid[] default null,
  p_settle_outcomes jsonb default null,
  p_isolated        boolean default true -- the caller runs nothing else, and claims nothing while it runs isolated jobs
) returns json
language plpgsql
security definer
set search_path from current
set enable_seqscan = off -- no table of the queue is ever read from end to end, whatever the statistics say
set enable_bitmapscan = off -- nor is a whole lane read and sorted
set jit = off -- before PostgreSQL 18 the two settings above make plans look expensive, so each call would compile them
set plan_cache_mode = force_generic_plan -- planning takes longer than the work
as $$
declare
  v_cursors cursors%rowtype;
  v_settled text[];
  v_batch   claim_batch;
  v_key     uuid;
  v_claims  bigint;
  v_leases  json[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then -- a call at every claim would cost more
    perform need_read_committed();
  end if;
  v_cursors := current_cursors(p_limit); -- first of all: an advance does nothing in a transaction that has written
  if p_settle_ids is not null then
    v_settled := settle(p_settle_ids, p_settle_keys, p_settle_outcomes);
  end if;

  v_batch.at := clock_timestamp();
  v_batch.jobs_left := p_limit;
  v_batch.bytes_left := p_max_bytes;
  v_batch.has_more := false;
  v_batch.some_expired := false;
  v_batch.is_probe := false;
  if exists (select from scheduled where run_at >= v_cursors.scheduled_cursor and run_at <= v_batch.at) then
    perform promote_due(greatest(2 * p_limit, 100), v_cursors.scheduled_cursor, v_batch.at);
  end if;
  v_batch := fill_batch(v_batch, p_queue, p_types, p_limits, v_cursors.cursor_seqs, p_isolated);

  if v_batch.taken is not null then
    v_key := new_lease_key(); -- after all rows were locked: see lease-key.sql
    v_claims := nextval('claim_count'); -- counts this claim; `perform` would cost a statement
    v_leases := write_leases(v_batch, v_key, p_lease_seconds, p_leases, p_worker);
    if p_limits is not null then
      perform count_claimed(p_limits, v_key);
    end if;
    if v_batch.trial_type is not null then
      perform note_trial(v_batch.trial_type, v_key, v_batch.taken[1].ids[1]);
    end if;
  end if;
  return json_build_object(
    'settled', v_settled, 'key', v_key, 'is_probe', v_batch.is_probe,
    'is_trial', v_batch.trial_type is not null, 'has_more', v_batch.has_more,
    'leases', v_leases);
end $$;

-- The cursors to read from. They are advanced by the claims that make them lag, once in about 400 claimed jobs, and by
-- a claim that finds that the clock has stepped back. Older cursors than the newest are right too: they stand further
-- to the left.
create or replace function current_cursors(p_limit int) returns cursors
language plpgsql as $$
declare
  c_lag        constant int := 400; -- jobs; a claim of 100 four times, or of 1 four hundred times
  c_fold_every constant int := 12; -- advances: the books are folded once in about 5,000 jobs
  c_fold_rows  constant int := 20000;
  v_cursors    cursors%rowtype;
begin
  select * into v_cursors from cursors order by id desc limit 1;
  if p_limit * (pg_sequence_last_value('claim_count') - coalesce(v_cursors.claims, 0)) >= c_lag
     or (clock_timestamp() < v_cursors.at) then
    perform advance_cursors();
    if v_cursors.id % c_fold_every = 0 then
      perform fold_ledger(c_fold_rows);
    end if;
    select * into v_cursors from cursors order by id desc limit 1; -- after a step of the clock they may have gone back
  end if;
  v_cursors.scheduled_cursor := coalesce(v_cursors.scheduled_cursor, '-infinity');
  return v_cursors;
end $$;

-- Takes jobs from the best priority downwards, until the batch is full or no priority with work is left.
create or replace function fill_batch(
  p_batch claim_batch, p_queue text, p_types text[], p_limits jsonb, p_cursor_seqs bigint[], p_isolated boolean
) returns claim_batch
language plpgsql as $$
declare
  c_turns      constant int := 50; -- ten priorities, and as often as expired jobs were in the way
  v_below      smallint; -- the next turn looks at priorities below this one; null: at all
  v_level      lane_level;
  v_some_alone boolean; -- some jobs of this priority must not share a claim (take-alone.sql)
begin
  for turn in 1 .. c_turns loop
    v_level := next_level(p_queue, p_types, v_below, p_limits, p_cursor_seqs, p_isolated);
    if v_level.priority is null then
      return p_batch;
    end if;
    v_some_alone := true = any(v_level.needs_quota) or (0 < any(v_level.group_sizes));
    if v_level.lanes is null then
      null; -- other claims were faster
    elsif p_batch.jobs_left = 0 or (v_some_alone and p_batch.taken is not null) then
      p_batch.has_more := true;
    elsif v_some_alone then
      p_batch := take_alone_or_shared(p_batch, v_level, p_queue, p_limits);
    else
      p_batch := take_oldest(p_batch, v_level);
    end if;

    if p_batch.some_expired then
      -- The choice was made by jobs that are gone now. v_below stays: the next turn looks at the same priority again.
      p_batch.some_expired := false;
      p_batch.has_more := false;
    elsif p_batch.has_more then
      return p_batch; -- what is left of this priority comes before everything of a lower one
    else
      v_below := v_level.priority; -- nothing is left of it, or other claims hold all the rest
    end if;
  end loop;
  p_batch.has_more := true; -- the turns are used up, so nobody knows
  return p_batch;
end $$;

-- Returns the leases as the answer has them.
create or replace function write_leases(
  p_batch claim_batch, p_key uuid, p_seconds float8, p_seconds_of_types jsonb, p_worker text
) returns json[]
language plpgsql as $$
declare
  v_taken    taken_jobs;
  v_deadline timestamptz;
  v_leases   json[];
begin
  foreach v_taken in array p_batch.taken loop
    v_deadline := p_batch.at
      + make_interval(secs => coalesce((p_seconds_of_types ->> v_taken.type)::float8, p_seconds));
    insert into lease (key, deadline, started_at, lane, worker, ids, attempts, abandonments)
    values (p_key, v_deadline, now(), v_taken.lane, p_worker, v_taken.ids, v_taken.attempts, v_taken.abandonments);
    v_leases := v_leases || json_build_object(
      'type', v_taken.type, 'priority', v_taken.priority, 'expires_ms', date_part('epoch', v_deadline) * 1000,
      'attempts', v_taken.attempts, 'abandonments', v_taken.abandonments, 'seqs', v_taken.seqs, 'jobs', v_taken.jobs);
  end loop;
  return v_leases;
end $$;

-- Moves jobs that have become due from `scheduled` to the end of their lanes, at most p_limit, the longest due first.
create or replace function promote_due(p_limit int, p_low timestamptz, p_now timestamptz default clock_timestamp())
returns void
language sql as $$
  with due as materialized (
    select ctid as tid
    from scheduled
    where run_at >= coalesce(p_low, '-infinity') and run_at <= p_now
    order by run_at
    limit p_limit
    for update skip locked
  ),
  removed as (
    delete from scheduled where ctid = any(array(select tid from due)) returning run_at, id, lane, attempt, abandonments
  ),
  booked as (
    insert into ledger (lane, scheduled) select lane, -count(*) from removed group by lane
  )
  insert into ready (seq, id, lane, attempt, abandonments)
  select nextval('ready_seq'), id, lane, attempt, abandonments
  from (select * from removed order by run_at) as in_order;
$$;
$file$,
$file$-- mend_stamps: sets timestamps that lie in the future to now. After the clock has stepped back, timestamps written
-- before the step lie ahead of it. Whoever waits for the clock to pass them would wait for the length of the step.
-- docs/engine.md, "When the clock steps", has the whole table.
--
-- Each table here is small, or is read from the right end of an index. Steps of less than a second are ignored, because
-- a row that is written while this runs may be ahead by that much.
create or replace function mend_stamps(p_limit int default 1000) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  c_longest_lease constant interval := interval '1 hour';
  c_longest_retry constant interval := interval '1 hour'; -- of a notice
  c_rounds        constant int := 1000;
  v_now           timestamptz := clock_timestamp();
  v_ahead         timestamptz := v_now + interval '1 second';
  v_rows          int;
  v_mended        int;
begin
  -- A lease keeps its length. A live worker settles or extends as before.
  update lease
  set deadline = least(v_now + (deadline - greatest(started_at, v_now)), v_now + c_longest_lease),
      started_at = least(started_at, v_now)
  where ctid = any(array(
    select ctid from lease
    where deadline > v_now and (started_at > v_ahead or deadline > v_ahead + c_longest_lease)
    order by deadline desc limit p_limit
    for update skip locked));
  get diagnostics v_mended = row_count;

  -- The next probe runs in a minute. Attempts count from now on.
  update breaker
  set opened_at = least(opened_at, v_now), probed_at = least(probed_at, v_now), closed_at = least(closed_at, v_now)
  where greatest(opened_at, probed_at, closed_at) > v_ahead;
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;

  -- Alarms and /health decide by these times whether rounds, completions and errors are recent.
  update round set ended_at = v_now, started_at = least(started_at, v_now)
  where id = any(array(select id from round order by id desc limit c_rounds)) and ended_at > v_ahead;
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;
  update enqueue_error set at = v_now
  where ctid = any(array(select ctid from enqueue_error where at > v_ahead limit p_limit));
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows + bring_back_minutes(v_ahead);

  -- The times until an alarm is repeated, or a notice retried, start now.
  update alarm
  set since = least(since, v_now), changed_at = least(changed_at, v_now), notified_at = least(notified_at, v_now)
  where greatest(since, changed_at, notified_at) > v_ahead;
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;
  update alarm_target
  set gone_since = least(gone_since, v_now), failing_since = least(failing_since, v_now),
      delivered_at = least(delivered_at, v_now)
  where greatest(gone_since, failing_since, delivered_at) > v_ahead;
  update delivery set created_at = least(created_at, v_now), next_try_at = v_now
  where seq = any(array(
    select seq from delivery
    where state = 'pending' and (created_at > v_ahead or next_try_at > v_ahead + c_longest_retry)
    limit p_limit
    for update skip locked));
  get diagnostics v_rows = row_count;
  update api_key set last_used_at = v_now where last_used_at > v_ahead;
  return v_mended + v_rows;
end $$;
$file$,
$file$-- deliver: sends notices to their targets.

-- Takes due deliveries of targets that are switched on, and holds them for some seconds. If the deliverer dies, the next
-- one takes them after that. A target gets the notices about one alarm in order, so that "resolved" cannot overtake
-- "firing".
create or replace function claim_deliveries(p_targets jsonb, p_limit int, p_lease_seconds float8)
returns table (id uuid, target text, notice jsonb, tries int)
language sql
security definer
set search_path from current
as $$
  with switched_on as materialized (
    select name from jsonb_to_recordset(p_targets) as target(name text, url_hash text)
    where not exists (
      select from alarm_target as known
      where known.name = target.name and known.url_hash = target.url_hash and known.gone_since is not null)
  ),
  due as materialized (
    select seq
    from delivery
    where state = 'pending' and next_try_at <= now()
      and target = any(array(select name from switched_on))
      and not exists (
        select from delivery as earlier
        where earlier.state = 'pending' and earlier.target = delivery.target and earlier.about = delivery.about
          and earlier.seq < delivery.seq)
    order by next_try_at
    limit p_limit
    for update skip locked -- another deliverer has it
  )
  update delivery
  set tries = tries + 1, next_try_at = now() + make_interval(secs => p_lease_seconds)
  where seq = any(array(select seq from due))
  returning id, target, notice, tries
$$;

-- Records how tries ended, for the deliveries and for their targets. Only the result of the latest try changes a
-- delivery. A result without an id belongs to a test notice. `gone` means that the delivery waits until the target has
-- another URL.
create or replace function settle_deliveries(p_results jsonb) returns int
language sql
security definer
set search_path from current
as $$
  with result as materialized (
    select *
    from rows from (jsonb_to_recordset(p_results) as (
      id uuid, tries int, target text, url_hash text, outcome text, status int, error text, retry_in_seconds float8
    )) with ordinality as result(id, tries, target, url_hash, outcome, status, error, retry_in_seconds, place)
  ),
  settled as (
    update delivery
    set state = case outcome when 'delivered' then 'delivered' else 'pending' end,
        ended_at = case outcome when 'delivered' then now() end,
        next_try_at = now() + make_interval(secs => coalesce(retry_in_seconds, 0)),
        status = result.status,
        error = left(result.error, 1000)
    from result
    where delivery.id = result.id and delivery.tries = result.tries and delivery.state = 'pending'
    returning delivery.id
  ),
  latest as ( -- the last answer of each target; a 410 counts even if a later answer differs
    select distinct on (target) target, url_hash, outcome, status, error
    from result
    order by target, outcome = 'gone' desc, place desc
  ),
  known as (
    insert into alarm_target as known (name, url_hash, gone_since, failing_since, delivered_at, status, error)
    select target, url_hash, case outcome when 'gone' then now() end, case outcome when 'retry' then now() end,
           case outcome when 'delivered' then now() end, status, left(error, 1000)
    from latest
    order by target
    on conflict (name) do update
    set url_hash = excluded.url_hash,
        gone_since = excluded.gone_since,
        failing_since = case when excluded.failing_since is not null and known.url_hash = excluded.url_hash
                             then coalesce(known.failing_since, excluded.failing_since)
                             else excluded.failing_since end,
        delivered_at = coalesce(excluded.delivered_at, known.delivered_at),
        status = excluded.status,
        error = excluded.error
  )
  select count(*)::int from settled
$$;

-- Gives up deliveries that failed for p_give_up_days, and removes those that ended p_keep_days ago.
create or replace function prune_deliveries(p_give_up_days int, p_keep_days int, p_limit int, out given_up int, out pruned int)
language plpgsql
security definer
set search_path from current
as $$
begin
  with too_old as materialized (
    select seq from delivery
    where state = 'pending' and created_at < now() - make_interval(days => p_give_up_days)
    order by seq limit p_limit for update skip locked
  )
  update delivery set state = 'given_up', ended_at = now() where seq = any(array(select seq from too_old));
  get diagnostics given_up = row_count;
  delete from delivery
  where seq = any(array(
    select seq from delivery
    where state <> 'pending' and ended_at < now() - make_interval(days => p_keep_days)
    order by ended_at limit p_limit for update skip locked));
  get diagnostics pruned = row_count;
end $$;
$file$,
$file$-- discard: closes a dead job for good. Answers as answer_with_job does; `applied` is false when the job is not dead. The
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
$file$,
$file$-- record enqueue errors: an isolate counts the enqueues that it answered with a 5xx or refused because the queue was full.
-- From time to time it adds its count here. snapshot() sums them up by minute.
create or replace function record_enqueue_errors(p_errors int) returns void
language sql
security definer
set search_path from current
as $$
  insert into enqueue_error (errors) values (p_errors)
$$;
$file$,
$file$-- enqueue: new jobs, one or many, in the caller's transaction. Three functions are called from outside:
--   enqueue(type, payload, …)            one job, for any SQL client
--   enqueue_many(type, payloads, …)      many jobs with the same options, fit for array(select … from my_table)
--   enqueue_jobs(jobs jsonb)             any batch, for the HTTP API
-- check.sql says what is refused, lanes.sql makes lanes, idempotency.sql reserves keys. The rows are written by
-- insert_uniform, the short way, or by insert_jobs, the long way.
--
-- A job's options are the fields of the type new_job. test/sql/job-options.test.ts compares them with the arguments here,
-- with the HTTP API and with the TypeScript types.

-- A new job, made from named arguments. The only place that knows the order of new_job's fields. Inlined.
create or replace function make_job(
  type            text,
  queue           text default null,
  priority        int default null,
  max_attempts    int default null,
  delay_seconds   float8 default null,
  scheduled_at    timestamptz default null,
  expires_at      timestamptz default null,
  idempotency_key text default null,
  partition_key   text default null,
  traceparent     text default null,
  tags            text[] default null
) returns new_job
language sql immutable
return row(type, null, queue, priority, max_attempts, delay_seconds, scheduled_at, expires_at, idempotency_key,
           partition_key, traceparent, tags)::new_job;

create or replace function enqueue(
  type            text,
  payload         jsonb default '{}',
  queue           text default null,
  priority        int default null,
  max_attempts    int default null,
  delay_seconds   float8 default null,
  scheduled_at    timestamptz default null,
  expires_at      timestamptz default null,
  idempotency_key text default null,
  partition_key   text default null,
  traceparent     text default null,
  tags            text[] default null
) returns uuid
language plpgsql
security definer
set search_path from current
as $$
begin
  return (enqueue_alike(
    make_job(type, queue => queue, priority => priority, max_attempts => max_attempts, delay_seconds => delay_seconds,
             scheduled_at => scheduled_at, expires_at => expires_at, idempotency_key => idempotency_key,
             partition_key => partition_key, traceparent => traceparent, tags => tags),
    array[payload]))[1];
end $$;

-- The options of enqueue, without those that belong to one job.
create or replace function enqueue_many(
  type          text,
  payloads      jsonb[],
  queue         text default null,
  priority      int default null,
  max_attempts  int default null,
  delay_seconds float8 default null,
  scheduled_at  timestamptz default null,
  expires_at    timestamptz default null,
  traceparent   text default null,
  tags          text[] default null
) returns setof uuid
language plpgsql
security definer
set search_path from current
as $$
begin
  return query select unnest(enqueue_alike(
    make_job(type, queue => queue, priority => priority, max_attempts => max_attempts, delay_seconds => delay_seconds,
             scheduled_at => scheduled_at, expires_at => expires_at, traceparent => traceparent, tags => tags),
    payloads));
end $$;

-- A list of jobs; or one object, with their `payloads` and the options that they share: texts and numbers only. The answer
-- has an object for each job; or only the ids, where the short way was taken: these jobs are new and due at once.
create or replace function enqueue_jobs(p_jobs jsonb) returns json
language plpgsql
security definer
set search_path from current
as $$
declare
  v_shared new_job;
  v_jobs   new_job[];
begin
  if jsonb_typeof(p_jobs) = 'object' then
    v_shared := make_job(
      p_jobs->>'type', queue => p_jobs->>'queue', priority => (p_jobs->>'priority')::int,
      max_attempts => (p_jobs->>'max_attempts')::int, delay_seconds => (p_jobs->>'delay_seconds')::float8,
      idempotency_key => p_jobs->>'idempotency_key', partition_key => p_jobs->>'partition_key',
      traceparent => p_jobs->>'traceparent');
    if is_plain(v_shared) then
      return to_json(insert_uniform(v_shared, p_jobs->'payloads'));
    end if;
    v_jobs := with_payloads(v_shared, array(select jsonb_array_elements(p_jobs->'payloads')));
  else
    v_jobs := array(select job from jsonb_populate_recordset(null::new_job, p_jobs) as job);
  end if;
  return coalesce(json_agg(json_build_object('id', id, 'status', status, 'deduplicated', deduplicated,
                                             'scheduled_ms', date_part('epoch', scheduled_at) * 1000)), '[]')
  from insert_jobs(v_jobs);
end $$;

-- An app's jobs that differ only in their payloads. Returns their ids in the order of the payloads.
create or replace function enqueue_alike(p_job new_job, p_payloads jsonb[]) returns uuid[]
language plpgsql as $$
declare
  v_fault text := outside_fault_of(p_job);
begin
  if v_fault is not null then
    perform refuse(v_fault);
  elsif is_plain(p_job) then
    return insert_uniform(p_job, to_jsonb(array_replace(p_payloads, null, '{}'))); -- a jsonb holds up to 256 MB
  end if;
  return array(select id from insert_jobs(with_payloads(p_job, p_payloads)));
end $$;

create or replace function with_payloads(p_job new_job, p_payloads jsonb[]) returns new_job[]
language plpgsql immutable as $$
declare
  v_jobs new_job[] := '{}';
begin
  foreach p_job.payload in array coalesce(p_payloads, '{}') loop
    v_jobs := v_jobs || p_job;
  end loop;
  return v_jobs;
end $$;
$file$,
$file$-- extend: moves the deadline of claimed jobs to `p_seconds` from now, never to an earlier time. It applies only while the
-- lease of the given key still holds the job, as in settle. Returns the jobs that it applied to. When it extends only some
-- jobs of a lease, they get a lease row of their own with the same key.
--
-- Locks: the lease rows, in the order that lock_leases gives. The statement after it has a fresh snapshot, so it sees what
-- those that it waited for have left.

create or replace function extend(p_ids uuid[], p_keys uuid[], p_seconds float8)
returns table (id uuid, key uuid, lease_expires_at timestamptz)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_deadline timestamptz := clock_timestamp() + make_interval(secs => p_seconds);
begin
  perform lock_leases(p_keys);

  return query
    with leased as materialized (
      select lease.ctid as tid, lease.key, lease.deadline, lease.started_at, lease.lane, lease.worker, entry.*,
             exists (select from unnest(p_ids, p_keys) as wanted(id, key)
                     where wanted.id = entry.id and wanted.key = lease.key) as is_wanted
      from lease
      cross join lateral unnest(ids, attempts, abandonments) with ordinality as entry(id, attempt, abandonments, place)
      where lease.key = any(p_keys)
    ),
    packed as materialized (
      select tid, is_wanted, key, deadline, started_at, lane, worker,
             array_agg(id order by place) as ids,
             case when count(attempt) > 0 then array_agg(attempt order by place) end as attempts,
             case when count(abandonments) > 0 then array_agg(abandonments order by place) end as abandonments,
             bool_and(is_wanted) over (partition by tid) as is_whole
      from leased
      group by tid, is_wanted, key, deadline, started_at, lane, worker
    ),
    prolonged as (
      update lease
      set deadline = greatest(lease.deadline, v_deadline)
      from packed
      where lease.ctid = packed.tid and packed.is_whole
    ),
    split as ( -- deleted, not shrunk: whoever waits for this row finds it gone and looks for both parts
      delete from lease where ctid = any(array(select tid from packed where is_wanted and not is_whole)) returning ctid
    ),
    parts as (
      insert into lease (key, deadline, started_at, lane, worker, ids, attempts, abandonments)
      select key, case when is_wanted then greatest(deadline, v_deadline) else deadline end, started_at, lane,
             worker, ids, attempts, abandonments
      from packed
      where tid = any(array(select ctid from split))
    )
    select leased.id, leased.key, greatest(leased.deadline, v_deadline) from leased where is_wanted;
end $$;

-- Extends one job. Answers as answer_with_job does; `applied` is false when the lease is lost.
create or replace function extend_one(p_id uuid, p_key uuid, p_seconds float8) returns jsonb
language plpgsql
security definer
set search_path from current
as $$
declare
  v_applied boolean := exists (select from extend(array[p_id], array[p_key], p_seconds));
begin
  return answer_with_job(p_id, v_applied);
end $$;
$file$,
$file$-- Idempotency keys: a second request with a key that is in use gets the job of the first one. A key is kept for 7 days.

create or replace function key_hash_of(key text) returns uuid
language sql immutable
return encode(substring(sha256(convert_to(key, 'UTF8')) for 16), 'hex')::uuid;

-- Two requests with one key are the same if all their other options are the same; only the trace context may differ. A
-- new option is compared without an edit here. Trailing nulls are cut off, so an option that is added to new_job does not
-- change the fingerprints of requests that do not use it. The two times are compared as numbers: their text depends on
-- the session's time zone.
create or replace function fingerprint_of(p_job new_job) returns bigint
language plpgsql immutable as $$
declare
  v_times text := row(extract(epoch from p_job.scheduled_at), extract(epoch from p_job.expires_at))::text;
begin
  p_job.idempotency_key := null;
  p_job.traceparent := null;
  p_job.scheduled_at := null;
  p_job.expires_at := null;
  return ('x' || left(md5(v_times || rtrim(p_job::text, ',)')), 16))::bit(64)::bigint;
end $$;

-- Reserves the keys of new jobs. Returns the places in p_jobs of the jobs whose key belongs to another job.
--
-- Two transactions with the same new key: the unique index makes the second one wait in its insert until the first has
-- ended. The read after that is a new statement with a new snapshot, so it sees what the first one committed. The insert
-- also locks the rows of keys that are in use, so none of them is pruned before the read.
create or replace function reserve_keys(p_jobs new_job[], p_stem text) returns bigint[]
language plpgsql as $$
#variable_conflict use_column
declare
  v_duplicates bigint[];
  v_conflict   text;
begin
  insert into idempotency as used (key_hash, id, fingerprint, expires_at)
  select distinct on (key_hash) key_hash, numbered_id(p_stem, ordinality), fingerprint, now() + interval '7 days'
  from (
    select key_hash_of((job).idempotency_key) as key_hash, fingerprint_of(job) as fingerprint, ordinality
    from (select job, row_number() over () as ordinality from unnest(p_jobs) as job) as listed
    where (job).idempotency_key is not null
  ) as keyed
  order by key_hash, ordinality -- all batches insert in the order of the hashes, so they cannot deadlock
  on conflict (key_hash) do update
  set id = excluded.id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
  where used.expires_at <= now();

  select array_agg(ordinality), min((job).idempotency_key) filter (where used.fingerprint <> fingerprint_of(job))
  into v_duplicates, v_conflict
  from (select job, row_number() over () as ordinality from unnest(p_jobs) as job) as listed
  cross join lateral (
    select id, fingerprint from idempotency
    where key_hash = key_hash_of((job).idempotency_key)
    limit 1 -- keeps the planner from reading the whole table: one index look-up for each key
  ) as used
  where used.id <> numbered_id(p_stem, ordinality);
  if v_conflict is not null then
    raise exception using errcode = 'SL422',
      message = format('the idempotency key "%s" was used for another request', v_conflict);
  end if;
  return coalesce(v_duplicates, '{}');
end $$;

-- The job that a key belongs to. One that was pruned had been completed. A function of its own: the plan of the view
-- `jobs` is large, and few enqueues need it.
create or replace function find_key_owner(p_key text, out id uuid, out status text, out scheduled_at timestamptz)
language plpgsql stable strict as $$
begin
  id := (select idempotency.id from idempotency where key_hash = key_hash_of(p_key));
  select jobs.status, jobs.scheduled_at into status, scheduled_at from jobs where jobs.id = find_key_owner.id;
  status := coalesce(status, 'completed');
  scheduled_at := coalesce(scheduled_at, time_of_id(id));
end $$;
$file$,
$file$-- Ids are uuid v7: they sort by time, so a job's day and its partition can be read off its id.

do $$
begin
  if current_setting('server_version_num')::int >= 180000 then
    create or replace function new_id() returns uuid
    language sql volatile parallel safe
    return uuidv7();

    create or replace function time_of_id(id uuid) returns timestamptz
    language sql immutable parallel safe
    return uuid_extract_timestamp(id);
  else
    -- 48 bits of milliseconds, version 7, 12 bits of the millisecond's fraction, variant, 62 random bits
    create or replace function new_id() returns uuid
    language sql volatile parallel safe
    as $body$
      select encode(
        int8send((micros / 1000 << 16) | (7 << 12) | (micros % 1000 * 4096 / 1000))
        || set_byte(rand, 0, get_byte(rand, 0) & 63 | 128), 'hex')::uuid
      from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as micros,
                   substring(uuid_send(gen_random_uuid()) for 8) as rand) fresh
    $body$;

    create or replace function time_of_id(id uuid) returns timestamptz
    language sql immutable parallel safe
    return to_timestamp((('x' || encode(substring(uuid_send(id) for 6), 'hex'))::bit(48)::bigint)::float8 / 1000);
  end if;
end $$;

-- The ids of one call share a prefix, the stem; the last hex digits are the job's number in the call. So they are in the
-- order of the jobs and next to each other on every version of PostgreSQL, and cost a third of random ones.
create or replace function id_stem(jobs int) returns text
language sql volatile
return left(new_id()::text, 36 - length(to_hex(jobs)));

create or replace function numbered_id(stem text, number bigint) returns uuid
language sql immutable
return (stem || lpad(to_hex(number), 36 - length(stem), '0'))::uuid;

-- The lowest id that a job created at that moment can have.
create or replace function id_at(moment timestamptz) returns uuid
language sql immutable parallel safe
return (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

-- The end of an id's 65-second bucket: its first 32 bits are the bucket.
create or replace function end_of_bucket(id uuid) returns uuid
language sql immutable parallel safe
return (left(id::text, 8) || repeat('f', 24))::uuid;

-- When a job expires: 30 days after its creation, unless its producer chose a time. The interval is in hours, since the
-- length of a day depends on the session's time zone.
create or replace function expiry_of(id uuid, expires_at timestamptz) returns timestamptz
language sql stable parallel safe -- as `+` is: declared immutable it could not be inlined
return coalesce(expires_at, time_of_id(id) + interval '720 hours');
$file$,
$file$-- insert_jobs: the long way of an enqueue, for any jobs, each with its own options. The short way is insert_uniform.

-- When a job is due; null: at once.
create or replace function run_at_of(delay_seconds float8, scheduled_at timestamptz, at timestamptz) returns timestamptz
language sql stable
return case when delay_seconds > 0 then at + make_interval(secs => delay_seconds)
            when scheduled_at > at then scheduled_at end;

-- One row for each job, in the order of the jobs.
create or replace function insert_jobs(p_jobs new_job[])
returns table (id uuid, status text, scheduled_at timestamptz, deduplicated boolean)
language plpgsql
set enable_seqscan = off -- the table of idempotency keys is large
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_some       record := check_jobs(p_jobs);
  v_lanes      int[] := lanes_of(p_jobs, v_some.are_of_one_lane);
  v_stem       text := id_stem(cardinality(p_jobs));
  v_first      uuid := numbered_id(v_stem, 1);
  v_last       uuid := numbered_id(v_stem, cardinality(p_jobs));
  v_now        timestamptz;
  v_duplicates bigint[] := '{}';
begin
  if v_some.have_time then
    -- The lock comes before the clock: so, while the clock does not step back, nothing is written with a run_at that lies
    -- before its writer's lock, and keep_reachable has nothing to do (see advance_cursors).
    lock table scheduled in row exclusive mode;
    v_now := clock_timestamp();
  end if;
  if v_some.have_key then
    v_duplicates := reserve_keys(p_jobs, v_stem);
  end if;

  with written as (
    insert into job (id, lane, max_attempts, scheduled_at, expires_at, idempotency_key, partition_key, traceparent,
                     tags, payload)
    select numbered_id(v_stem, ordinality), v_lanes[ordinality], coalesce(new.max_attempts, 5::smallint), run_at,
           -- a job that is due after its default expiry would never run
           coalesce(new.expires_at, run_at + interval '720 hours'),
           new.idempotency_key, new.partition_key, traceparent_of(new.traceparent), nullif(new.tags, '{}'),
           coalesce(new.payload, '{}')
    from unnest(p_jobs) with ordinality as new
    cross join lateral (select run_at_of(new.delay_seconds, new.scheduled_at, v_now) as run_at) as due
    where ordinality <> all(v_duplicates)
    returning id, lane, scheduled_at
  ),
  readied as (
    insert into ready (seq, id, lane) select nextval('ready_seq'), id, lane from written where scheduled_at is null
  )
  insert into ledger (lane, enqueued, pending, scheduled)
  select lane, count(*), count(*), nullif(count(scheduled_at), 0) from written group by lane;
  if v_some.have_time or v_some.have_expiry then
    perform insert_times(v_first, v_last);
  end if;
  if v_some.have_tags then
    insert into job_tag (tag, id)
    select distinct tag, job.id from job cross join unnest(job.tags) as tag where job.id between v_first and v_last;
  end if;

  return query
    select coalesce(owner.id, numbered_id(v_stem, ordinality)),
           coalesce(owner.status, 'pending'),
           coalesce(owner.scheduled_at, run_at_of(new.delay_seconds, new.scheduled_at, v_now), time_of_id(v_first)),
           owner.id is not null
    from unnest(p_jobs) with ordinality as new
    cross join lateral find_key_owner(case when ordinality = any(v_duplicates) then new.idempotency_key end) as owner
    order by ordinality;
end $$;

-- Schedules the written jobs that are due later, and lists the expiry times that do not follow from the id.
create or replace function insert_times(p_first uuid, p_last uuid) returns void
language plpgsql as $$
declare
  v_earliest timestamptz;
begin
  with written as materialized (
    select id, lane, scheduled_at, expires_at from job where id between p_first and p_last
  ),
  postponed as (
    insert into scheduled (run_at, id, lane)
    select scheduled_at, id, lane from written where scheduled_at is not null
    returning run_at
  ),
  expiring as (
    insert into expiry (expires_at, id) select expires_at, id from written where expires_at is not null
  )
  select min(run_at) into v_earliest from postponed;
  perform keep_reachable(v_earliest);
end $$;
$file$,
$file$-- insert_uniform: the short way of an enqueue, for jobs that differ only in their payloads and are due at once. Nearly
-- every call is one of these. A statement's start-up time grows with its parts, and for a few jobs it is longer than the
-- writing: insert_jobs has all the parts, this function has the fewest.

-- Returns the ids in the order of the payloads.
create or replace function insert_uniform(p_job new_job, p_payloads jsonb) returns uuid[]
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_jobs  int := coalesce(jsonb_array_length(p_payloads), 0);
  v_stem  text := id_stem(v_jobs);
  -- Only the options that a plain job can have: the checks of the others are left out when this is planned.
  v_fault text := fault_of(make_job(p_job.type, priority => p_job.priority, max_attempts => p_job.max_attempts,
                                    partition_key => p_job.partition_key));
  v_trace text;
  v_lane  int;
  v_ids   uuid[];
begin
  if v_fault is not null then
    perform refuse(v_fault);
  elsif v_jobs = 0 then
    return '{}';
  end if;
  if p_job.traceparent is not null then -- setting the check up costs 5 % of an enqueue
    v_trace := traceparent_of(p_job.traceparent);
  end if;
  v_lane := lane_of(coalesce(p_job.queue, 'default'), p_job.type, coalesce(p_job.priority, 5::smallint));

  if v_jobs = 1 and payload_fault_of(p_payloads->0) is null then
    -- The same as below: rows of values start in half the time.
    v_ids := array[numbered_id(v_stem, 1)];
    with written as (
      insert into job (id, lane, max_attempts, partition_key, traceparent, payload)
      values (v_ids[1], v_lane, coalesce(p_job.max_attempts, 5::smallint), p_job.partition_key, v_trace, p_payloads->0)
    ),
    readied as (
      insert into ready (seq, id, lane) values (nextval('ready_seq'), v_ids[1], v_lane)
    )
    insert into ledger (lane, enqueued, pending) values (v_lane, 1, 1);
    return v_ids;
  end if;

  with written as (
    insert into job (id, lane, max_attempts, partition_key, traceparent, payload)
    select numbered_id(v_stem, new.number), v_lane, coalesce(p_job.max_attempts, 5::smallint),
           p_job.partition_key, v_trace, new.payload
    from jsonb_array_elements(p_payloads) with ordinality as new(payload, number)
    where payload_fault_of(new.payload) is null
    returning id
  ),
  readied as (
    insert into ready (seq, id, lane) select nextval('ready_seq'), id, v_lane from written
  ),
  booked as (
    insert into ledger (lane, enqueued, pending) values (v_lane, v_jobs, v_jobs)
  )
  select array_agg(id) into v_ids from written;
  if cardinality(v_ids) is distinct from v_jobs then
    perform refuse(payload_fault_of(payload))
    from jsonb_array_elements(p_payloads) as payload
    where payload_fault_of(payload) is not null;
  end if;
  return v_ids;
end $$;
$file$,
$file$-- inspect: looks for states that no job can be in. The tables themselves refuse only a few of them, because checks would
-- cost time in every statement (docs/decisions/constraints.md). So each reap round inspects a sample. What it finds is
-- stored in `impossible_state`, inspected again by each later round, and removed when it is fine.
--
-- There are no false alarms: a job moves between its tables within one transaction, and wrong_states is one statement,
-- which reads all tables in one snapshot. An advisory lock lets only one inspection run at a time.
create or replace function inspect(
  p_jobs int default 500, -- neighbours, from a random start
  p_rows int default 200, -- leases, and rows of `done`
  out looked int, out wrong int
)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  c_most constant int := 100; -- the most rows that are stored, because each round inspects all of them
  v_ids  uuid[];
begin
  looked := 0;
  if pg_try_advisory_xact_lock(hashtextextended('sluice.inspect.' || current_schema(), 0)) then
    v_ids := some_job_ids(p_jobs);
    looked := cardinality(v_ids);
    with found as materialized (
      select kind, id, what from wrong_states(v_ids[1], v_ids[looked], p_rows)
    ),
    forgotten as (
      delete from impossible_state as known
      where not exists (select from found where found.kind = known.kind and found.id = known.id)
    )
    insert into impossible_state as known (kind, id, what)
    select found.kind, found.id, found.what
    from found left join impossible_state as old using (kind, id)
    order by old.id is null, found.kind, found.id -- rows that are stored already come first
    limit c_most
    on conflict (kind, id) do update set what = excluded.what where known.what <> excluded.what;
  end if;
  select count(*) into wrong from impossible_state;
end $$;

-- A range of ids for the sample. It starts at a random time among all jobs, then at a random time within that 65-second
-- bucket of ids, then a random number of jobs further. So the middle of a burst is inspected too. If too few jobs follow,
-- the range ends with the last job.
create or replace function some_job_ids(p_count int) returns uuid[]
language plpgsql as $$
declare
  c_further constant int := 10000;
  v_low     uuid := (select id from job order by id limit 1);
  v_high    uuid := (select id from job order by id desc limit 1);
  v_last    uuid := (select id from (select id from job order by id desc limit p_count) as newest order by id limit 1);
  v_ids     uuid[];
  v_skipped int;
begin
  v_low := (select id from job where id >= random_start(v_low, v_high) order by id limit 1);
  v_high := (select id from job where id <= end_of_bucket(v_low) order by id desc limit 1);
  v_low := least(random_start(v_low, v_high), v_last);
  v_ids := array(select id from job where id >= v_low order by id limit c_further + p_count);
  v_skipped := floor(random() * (greatest(cardinality(v_ids) - p_count, 0) + 1));
  return v_ids[v_skipped + 1 : v_skipped + p_count];
end $$;

create or replace function random_start(p_low uuid, p_high uuid) returns uuid
language sql volatile
return id_at(time_of_id(p_low) + random() * (time_of_id(p_high) - time_of_id(p_low)));

-- What is wrong with the jobs from one id to another, and with the jobs that were wrong before. Every look is by an
-- index, except for the leases: they have none by job, so they are read once.
create or replace function wrong_jobs(p_low uuid, p_high uuid)
returns table (kind text, id uuid, what text)
language sql volatile as $$
  -- The jobs are looked up by ranges of ids. A list of ids would be searched for one by one, in each partition of `job`:
  -- before PostgreSQL 17 that is some 15,000 buffers for 500 jobs.
  with id_range as materialized (
    select p_low as low, p_high as high
    union all
    select known.id, known.id from impossible_state as known
    where known.kind = 'job' and (known.id between p_low and p_high) is not true -- no job is counted twice
  ),
  sample as materialized (
    select job.id, job.max_attempts
    from id_range cross join lateral (select id, max_attempts from job where job.id >= low and job.id <= high offset 0) as job
  ),
  bucket as materialized ( -- of ids: all of a row of `done` lie in one
    select distinct (left(sample.id::text, 8) || repeat('0', 24))::uuid as low, end_of_bucket(sample.id) as high from sample
  ),
  place as (
    select ready.id, 'ready' as name, ready.attempt, 0 as more
    from id_range cross join lateral (select id, attempt from ready where id >= low and id <= high offset 0) as ready
    union all
    select scheduled.id, 'scheduled', scheduled.attempt, 0
    from id_range cross join lateral (select id, attempt from scheduled where id >= low and id <= high offset 0) as scheduled
    union all
    select closed.id, 'closed', closed.attempt, 0
    from id_range cross join lateral (select id, attempt from closed where id >= low and id <= high offset 0) as closed
    union all
    -- The check after a reconciled job's last run is one claim more than the maximum.
    select entry.id, 'lease', coalesce(entry.attempt, 1), 1
    from lease cross join lateral unnest(ids, attempts) as entry(id, attempt)
    where deadline > '-infinity'
    union all
    select entry.id, 'done', coalesce(entry.attempt, 1), 1
    from bucket
    cross join lateral (select ids, attempts from done where hi_id >= low and hi_id <= high offset 0) as packed
    cross join lateral unnest(ids, attempts) as entry(id, attempt)
  ),
  job_state as (
    select sample.id, max_attempts, count(place.name) as places,
           string_agg(place.name, ' and ' order by place.name) as names,
           max(place.attempt) as attempt, bool_or(place.attempt < 0 or place.attempt > max_attempts + more) as is_beyond
    from sample left join place on place.id = sample.id
    group by sample.id, max_attempts
  )
  select 'job', job_state.id,
         case when places = 0 then 'is in none of ready, scheduled, lease, done and closed'
              when places > 1 then format('is in %s at once', names)
              when is_beyond then format('is at attempt %s of at most %s', attempt, max_attempts)
         end
  from job_state
$$;

-- What is wrong with the newest leases and rows of `done`, and with those that were wrong before.
create or replace function wrong_packed_rows(p_rows int)
returns table (kind text, id uuid, what text)
language sql volatile as $$
  with packed as ( -- rows with arrays of ids
    select 'lease' as kind, newest.key as id, ids, attempts, abandonments, ids[1] as lo_id, ids[cardinality(ids)] as hi_id
    from (
      (select key, ids, attempts, abandonments from lease order by deadline desc limit p_rows)
      union all
      select key, ids, attempts, abandonments from lease
      where key = any(array(select known.id from impossible_state as known where known.kind = 'lease'))
    ) as newest
    union all
    select 'done', newest.hi_id, ids, attempts, null, lo_id, hi_id
    from (
      (select hi_id, lo_id, ids, attempts from done order by hi_id desc limit p_rows)
      union all
      select hi_id, lo_id, ids, attempts from done
      where hi_id = any(array(select known.id from impossible_state as known where known.kind = 'done'))
    ) as newest
  )
  select packed.kind, packed.id,
         case when cardinality(attempts) <> cardinality(ids)
                then format('has %s jobs and %s attempts', cardinality(ids), cardinality(attempts))
              when cardinality(abandonments) <> cardinality(ids)
                then format('has %s jobs and %s abandonments', cardinality(ids), cardinality(abandonments))
              when ids <> array(select distinct entry from unnest(ids) as entry order by entry)
                then 'has jobs that are not in the order of their ids'
              when lo_id <> ids[1] or hi_id <> ids[cardinality(ids)]
                then 'has a lowest or highest id that is not its own'
         end
  from packed
$$;

-- At most one row for each job, lease and row of `done`.
create or replace function wrong_states(p_low uuid, p_high uuid, p_rows int)
returns table (kind text, id uuid, what text)
language sql volatile as $$
  select distinct on (wrong.kind, wrong.id) wrong.kind, wrong.id, wrong.what
  from (
    select * from wrong_jobs(p_low, p_high)
    union all
    select * from wrong_packed_rows(p_rows)
  ) as wrong
  where wrong.what is not null
  order by wrong.kind, wrong.id
$$;
$file$,
$file$-- jobs: a view with one row for each job, its state and its times. People use it with psql, and so does every look-up. A
-- job's state is the table that it is in. Each table is searched by id, and `lease` only if no other table has the job.

-- The errors of a job, oldest first, at most the last 100. Stacks and causes are only in the answer for a single job: for a
-- claim or a page of jobs they would be megabytes.
create or replace function errors_of(p_id uuid, p_is_detailed boolean default false) returns jsonb
language sql stable security definer
begin atomic
  select coalesce(jsonb_agg(jsonb_build_object('attempt', attempt, 'at', failed_at, 'message', message)
                            || case when p_is_detailed then coalesce(detail, '{}') else '{}' end
                            order by failed_at), '[]')
  from (select * from failed_attempt where id = p_id order by failed_at desc limit 100) as latest;
end;

create or replace view jobs as
select job.id,
       lane.type,
       lane.queue,
       lane.priority,
       case when ready.id is not null or scheduled.id is not null then 'pending'
            when closed.id is not null then closed.status
            when done.finished_at is not null then 'completed'
            else 'processing' end as status,
       coalesce(ready.attempt, scheduled.attempt, closed.attempt, done.attempt, held.attempt, 0)::int as attempts,
       job.max_attempts,
       time_of_id(job.id) as created_at,
       coalesce(scheduled.run_at, job.scheduled_at, time_of_id(job.id)) as scheduled_at,
       coalesce(held.started_at, done.started_at, closed.started_at, latest.started_at) as started_at,
       done.finished_at as completed_at,
       closed.closed_at,
       expiry_of(job.id, job.expires_at) as expires_at,
       closed.reason as dead_reason,
       job.partition_key,
       job.tags,
       job.idempotency_key,
       job.traceparent,
       job.payload,
       output.output,
       errors_of(job.id) as errors,
       held.worker,
       held.deadline as lease_expires_at
from job
join lane using (lane)
left join ready on ready.id = job.id
left join scheduled on scheduled.id = job.id
left join closed on closed.id = job.id
left join output on output.id = job.id
left join lateral (
  select done.started_at, done.finished_at,
         coalesce(done.attempts[array_position(done.ids, job.id)], 1) as attempt
  from done
  where done.hi_id >= job.id and done.hi_id <= end_of_bucket(job.id) and done.lo_id <= job.id
    and job.id = any(done.ids)
    and ready.id is null and scheduled.id is null and closed.id is null
  order by done.hi_id
  limit 1
) as done on true
left join lateral (
  select lease.started_at, lease.deadline, lease.worker,
         coalesce(lease.attempts[array_position(lease.ids, job.id)], 1) as attempt
  from lease
  where job.id = any(lease.ids)
    and lease.deadline > now() - interval '1 hour' -- a range of the index, not the whole table
    and ready.id is null and scheduled.id is null and closed.id is null and done.finished_at is null
  limit 1
) as held on true
left join lateral (
  select failed_attempt.started_at
  from failed_attempt
  where failed_attempt.id = job.id
  order by failed_at desc
  limit 1
) as latest on true;

create or replace function find_job(p_id uuid) returns setof jobs
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select * from jobs where id = p_id
$$;

-- What a change of one job answers: { applied, job }, with the job as it is now and the stacks and causes of its errors.
-- Null when there is no such job. Callers use it as their last statement: it has a snapshot of its own, younger than the
-- change, so it sees what the caller wrote.
create or replace function answer_with_job(p_id uuid, p_applied boolean) returns jsonb
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan -- the view takes longer to plan than to run
as $$
begin
  return (
    select jsonb_build_object('applied', p_applied,
                              'job', to_jsonb(jobs) || jsonb_build_object('errors', errors_of(id, true)))
    from jobs
    where id = p_id);
end $$;
$file$,
$file$-- API keys: add, find by hash, revoke. Only the hash of a key is stored.

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
$file$,
$file$-- Lanes: finding the lane of a queue, a type and a priority, and making it for the first job that needs it.

-- Several transactions may need the same new lane at once. The advisory lock lets one of them make it. The others wait a
-- few milliseconds, but not for a transaction that stays open: then each makes a lane of its own, which is as good.
create or replace function lane_of(p_queue text, p_type text, p_priority smallint, p_group_size smallint default 0)
returns int
language plpgsql as $$
declare
  c_tries constant int := 10;
  c_seconds constant float8 := 0.005;
  v_lane      int;
  v_has_lock  boolean := false;
begin
  for n in 0 .. c_tries loop
    select lane into v_lane
    from lane
    where queue = p_queue and type = p_type and priority = p_priority and group_size = p_group_size
    order by lane
    limit 1;
    exit when v_lane is not null or n = c_tries;
    -- With the lock it looks once more: another transaction may have committed the lane in between.
    if not pg_try_advisory_xact_lock(hashtextextended(
         format('sluice.lane.%s.%s.%s.%s.%s', current_schema(), p_queue, p_type, p_priority, p_group_size), 0)) then
      perform pg_sleep(c_seconds);
    elsif v_has_lock then
      exit;
    else
      v_has_lock := true;
    end if;
  end loop;
  if v_lane is null then
    perform refuse_bad_name('type', p_type), refuse_bad_name('queue', p_queue);
    if p_group_size = 0 then -- lanes of isolated jobs are made for jobs that are stored already, so they are not refused
      perform refuse_too_many_lanes(p_queue);
    end if;
    insert into lane (queue, type, priority, group_size)
    values (p_queue, p_type, p_priority, p_group_size)
    returning lane into v_lane;
  end if;
  return v_lane;
end $$;

-- The lane of each job, in the order of the jobs. lane_of is called once for each lane: a call costs more than the join.
create or replace function lanes_of(p_jobs new_job[], p_are_of_one_lane boolean) returns int[]
language plpgsql as $$
declare
  v_lanes int[];
begin
  if p_are_of_one_lane then
    return array_fill(
      lane_of(coalesce(p_jobs[1].queue, 'default'), p_jobs[1].type, coalesce(p_jobs[1].priority, 5::smallint)),
      array[cardinality(p_jobs)]);
  end if;
  with wanted as materialized (
    select coalesce(job.queue, 'default') as queue, job.type, coalesce(job.priority, 5::smallint) as priority, ordinality
    from unnest(p_jobs) with ordinality as job
  ),
  found as materialized (
    select queue, type, priority, lane_of(queue, type, priority) as lane
    from (select distinct queue, type, priority from wanted) as name
  )
  select array_agg(found.lane order by ordinality) into v_lanes
  from wanted join found using (queue, type, priority);
  return v_lanes;
end $$;

-- Called only for a new lane: a name that has a lane was checked when the lane was made.
create or replace function refuse_bad_name(p_field text, p_name text) returns void
language plpgsql as $$
begin
  if p_name is null or p_name !~ '^[a-z][a-z0-9_.-]{0,62}$' then
    perform refuse(format('%s: lower case letters, digits, ".", "_" and "-", at most 63, a letter first', p_field));
  end if;
end $$;

-- Every round looks at every lane, so their number is bounded: queues by the setting sluice.max_queues, lanes by five
-- times that. They are counted only when a lane is made. Lanes that other transactions make at the same moment are not
-- counted, so the bound may be exceeded by as many as there are such transactions.
create or replace function refuse_too_many_lanes(p_queue text) returns void
language plpgsql as $$
declare
  v_max      int := coalesce(nullif(current_setting('sluice.max_queues', true), ''), '1000');
  v_queues   int;
  v_lanes    int;
  v_is_new   boolean;
begin
  select count(distinct queue), count(*), coalesce(bool_and(queue <> p_queue), true)
  into v_queues, v_lanes, v_is_new
  from lane
  where group_size = 0;
  if v_queues >= v_max and v_is_new then
    perform refuse(format('queue: there are %s queues already and no more are made, use one of them '
                          'or raise sluice.max_queues', v_queues));
  elsif v_lanes >= 5 * v_max then
    perform refuse(format('queue: there are %s combinations of queue, type and priority already and no more are made, '
                          'use one of them or raise sluice.max_queues', v_lanes));
  end if;
end $$;
$file$,
$file$-- The key of a lease: 64 bits of its generation, then 62 random bits. Keys sort by their generation.
--
-- Two things must hold, even after a failover that lost transactions, after a restore to a point in time, and when the
-- clock has stepped:
--
-- 1. No key is given out twice. The random bits see to that.
-- 2. The later of two claims of one job has the higher generation, so that handlers can fence their own writes with it.
--    Within one database this holds because a claim takes its key after it has locked its rows, and because the sequence
--    only rises. After a failover the sequence may have an old value. So generations are microseconds: a claim that finds
--    the sequence more than a second behind the clock sets it to the clock. That is higher than every generation that was
--    lost, unless the lost claim is younger than a second. A clock that steps back changes nothing.

create or replace function new_lease_key() returns uuid
language plpgsql as $$
declare
  c_tries      constant int := 20;
  c_behind     constant bigint := 1000000; -- microseconds
  v_micros     bigint := date_part('epoch', clock_timestamp()) * 1000000;
  v_generation bigint;
begin
  for n in 1 .. c_tries loop
    v_generation := nextval('lease_generation');
    exit when v_generation >= v_micros - c_behind;
    -- The lock and the second look under it make sure that nobody moves the sequence back. A claim that takes a number
    -- meanwhile gets a lower or a higher one, never the same.
    if pg_try_advisory_xact_lock(hashtextextended('sluice.generation.' || current_schema(), 0)) then
      if nextval('lease_generation') < v_micros - c_behind then
        perform setval('lease_generation', v_micros);
      end if;
    else
      perform pg_sleep(0.001); -- c_tries bounds the wait: the lock's holder may stay in its transaction for long
    end if;
  end loop;
  return (lpad(to_hex(v_generation), 16, '0') || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid;
end $$;

create or replace function generation_of(lease_key uuid) returns bigint
language sql immutable
return ('x' || left(replace(lease_key::text, '-', ''), 16))::bit(64)::bigint;
$file$,
$file$-- limits: how many jobs of a type may be claimed now, across all drains? One claim at a time looks at a type, by an advisory
-- lock that lasts until the claim has committed what it took. Other claims leave the type out rather than wait.

create or replace function quota_of(
  p_type text, p_limits jsonb,
  out quota int, -- null: no limit
  out is_probe boolean,
  out is_trial boolean -- the type's breaker counts what is taken as its probe or its step
)
language plpgsql as $$
declare
  v_now   timestamptz;
  v_limit jsonb := p_limits -> p_type;
begin
  is_probe := false;
  is_trial := false;
  if v_limit is null and not exists (select from breaker where type = p_type and step is not null) then
    return;
  end if;
  if not pg_try_advisory_xact_lock(hashtextextended(format('sluice.type.%s.%s', current_schema(), p_type), 0)) then
    quota := 0;
    return;
  end if;
  v_now := clock_timestamp(); -- after the lock, so that no later claim has an earlier time

  select step.quota, step.is_probe into quota, is_probe from breaker_quota(p_type, v_now) as step;
  is_trial := quota is not null;
  if v_limit is not null and quota is distinct from 0 and not is_probe then
    quota := least(quota, limit_quota(p_type, v_limit, v_now));
  end if;
end $$;

-- How many jobs of a type its own limits allow now.
create or replace function limit_quota(p_type text, p_limit jsonb, p_now timestamptz) returns int
language plpgsql as $$
declare
  v_state limit_state%rowtype;
begin
  select * into v_state from limit_state where type = p_type order by id desc limit 1;
  if p_now < any(v_state.started_at) then
    -- The clock has stepped back. Starts that lie ahead of it happened now at the latest. This is written down, so that
    -- their window ends.
    update limit_state
    set started_at = array(select least(at, p_now) from unnest(started_at) with ordinality as entry(at, place) order by place)
    where type = p_type and id = v_state.id
    returning started_at into v_state.started_at;
  end if;
  return greatest(0, least(
    (p_limit ->> 'concurrency')::int - (
      select coalesce(sum(cardinality(lease.ids)), 0)
      from lease join lane using (lane)
      where lease.key = any(v_state.lease_keys) and lane.type = p_type),
    (p_limit ->> 'rate')::int - (
      select coalesce(sum(entry.jobs), 0)
      from unnest(v_state.started_at, v_state.started) as entry(at, jobs)
      where entry.at > p_now - make_interval(secs => (p_limit ->> 'seconds')::float8))));
end $$;

-- Writes down what a claim took of the limited types, for the next claim to count. Leases that are gone and starts that are
-- past their window drop out.
create or replace function count_claimed(p_limits jsonb, p_lease_key uuid) returns void
language plpgsql as $$
declare
  v_taken record;
  v_state limit_state%rowtype;
  v_now   timestamptz := clock_timestamp();
begin
  for v_taken in
    select lane.type, sum(cardinality(lease.ids))::int as jobs, p_limits -> lane.type as limits
    from lease join lane using (lane)
    where lease.key = p_lease_key and p_limits ? lane.type
    group by lane.type
  loop
    select * into v_state from limit_state where type = v_taken.type order by id desc limit 1;
    delete from limit_state where type = v_taken.type and id <= v_state.id;
    insert into limit_state (type, lease_keys, started_at, started)
    values (
      v_taken.type,
      array(select distinct key from lease where key = any(v_state.lease_keys)) || p_lease_key,
      array(select at from unnest(v_state.started_at) as at
            where at > v_now - make_interval(secs => coalesce((v_taken.limits ->> 'seconds')::float8, 0))) || v_now,
      array(select entry.jobs from unnest(v_state.started_at, v_state.started) as entry(at, jobs)
            where entry.at > v_now - make_interval(secs => coalesce((v_taken.limits ->> 'seconds')::float8, 0)))
        || v_taken.jobs);
  end loop;
end $$;
$file$,
$file$-- list: jobs by types, status, queue and tag, newest first, a page at a time (`p_before` is the last id of the previous
-- page). Each status is read from the table that holds it. Every branch ends in look-ups by id.

-- Completed jobs stand in rows of many ids. The rows come by their newest id, until the page is full and the next row has
-- nothing newer. It runs with the planner settings of list_jobs().
create or replace function completed_ids(p_before uuid, p_any boolean, p_lanes int[], p_limit int) returns uuid[]
language plpgsql stable
set search_path from current
as $$
declare
  v_ids uuid[] := '{}';
  v_row record;
begin
  for v_row in
    select hi_id, ids from done
    where hi_id <= end_of_bucket(p_before) and lo_id < p_before and (p_any or lane = any(p_lanes))
    order by hi_id desc
  loop
    exit when cardinality(v_ids) = p_limit and v_ids[p_limit] > v_row.hi_id;
    v_ids := array(
      select id from unnest(v_ids || v_row.ids) as id where id < p_before order by id desc limit p_limit);
  end loop;
  return v_ids;
end $$;

create or replace function list_jobs(
  p_types text[], p_status text, p_queue text, p_tag text, p_before uuid, p_limit int
) returns setof jobs
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_custom_plan -- a filter that is null drops out of the plan
as $$
#variable_conflict use_column
declare
  c_last   constant uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  v_before uuid := coalesce(p_before, c_last);
  v_lanes  int[] := array(
    select lane from lane
    where (p_types is null or type = any(p_types))
      and (p_queue is null or queue = p_queue)
      and (p_types is not null or p_queue is not null or type <> 'sluice.canary')); -- the canary shows only where it is asked for
  v_any    boolean := p_types is null and p_queue is null and not exists (select from lane where type = 'sluice.canary');
  v_ids    uuid[];
begin
  if p_tag is not null then
    v_ids := array(
      select tagged.id
      from (select id from job_tag where tag = p_tag and id < v_before order by id desc) as tagged
      cross join lateral (
        select from jobs
        where jobs.id = tagged.id
          and (p_status is null or jobs.status = p_status)
          and (p_types is null or jobs.type = any(p_types)) and (p_queue is null or jobs.queue = p_queue)
        offset 0 -- a fence: each job is looked up by its id, and only until the page is full
      ) as wanted
      limit p_limit);
  elsif p_status = 'pending' then
    v_ids := array(
      select id from (
        (select id from ready where id < v_before and (v_any or lane = any(v_lanes)) order by id desc limit p_limit)
        union all
        (select id from scheduled where id < v_before and (v_any or lane = any(v_lanes)) order by id desc limit p_limit)
      ) as pending order by id desc limit p_limit);
  elsif p_status = 'processing' then
    v_ids := array(
      select id from lease cross join unnest(ids) as id
      where id < v_before and lane = any(v_lanes)
      order by id desc limit p_limit);
  elsif p_status in ('dead', 'discarded', 'cancelled') then
    v_ids := array(
      select id from closed
      where status = p_status and id < v_before and (v_any or lane = any(v_lanes))
      order by id desc limit p_limit);
  elsif p_status = 'completed' then
    v_ids := completed_ids(v_before, v_any, v_lanes, p_limit);
  else
    v_ids := array(
      select job.id from job
      where job.id < v_before and (v_any or lane = any(v_lanes))
      order by job.id desc limit p_limit);
  end if;
  return query
    select found.*
    from unnest(v_ids) as page(id)
    cross join lateral (select * from jobs where jobs.id = page.id offset 0) as found -- the same fence
    order by page.id desc;
end $$;

-- Lists dead jobs alone, also by the reason for which they died.
create or replace function list_dead_letters(p_type text, p_reason text, p_before uuid, p_limit int) returns setof jobs
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_custom_plan -- a filter that is null drops out of the plan
as $$
begin
  return query
    select found.*
    from (
      select id from closed
      where status = 'dead'
        and (p_before is null or id < p_before)
        and (p_type is null or lane = any(array(select lane.lane from lane where lane.type = p_type)))
        and (p_reason is null or reason = p_reason)
      order by id desc
      limit p_limit
    ) as page
    cross join lateral (select * from jobs where jobs.id = page.id offset 0) as found -- a fence: look-ups by id
    order by page.id desc;
end $$;
$file$,
$file$-- `job` and `done` have a partition for each day of ids. Adding and dropping a day needs locks that block everybody else.
-- So these functions wait only briefly for a lock, give up, and are tried again in the next round.
--
-- They lock the parent table before its partitions, as every other statement does, so they cannot deadlock. An advisory
-- lock lets only one of add_partitions, drop_oldest_day and prune run at a time, because they also use partitions directly.

create or replace function lock_partitions() returns boolean
language sql volatile
return pg_try_advisory_xact_lock(hashtextextended('sluice.partitions.' || current_schema(), 0));

create or replace function partition_name(p_table text, p_day date) returns text
language sql immutable
return format('%s_%s', p_table, to_char(p_day, 'YYYYMMDD'));

-- Where a day of ids begins: at the start of the 65-second bucket that contains midnight. So a packed row never spans two days.
create or replace function start_of_day(p_day date) returns uuid
language sql immutable
return (left(id_at(p_day::timestamp at time zone 'utc')::text, 8) || repeat('0', 24))::uuid;

-- Partitions for today and the next days. A day that began in the default partition stays there.
-- Attaching locks the default partition for a moment, and every claim reads that partition.
create or replace function add_partitions(p_days int default 7) returns int
language plpgsql
security definer
set search_path from current
set lock_timeout = '50ms'
as $$
declare
  v_table text;
  v_day   date;
  v_name  text;
  v_added int := 0;
begin
  if not lock_partitions() then
    return 0;
  end if;
  for v_day in select (now() at time zone 'utc')::date + n from generate_series(0, p_days) as n loop
    continue when to_regclass(partition_name('job', v_day)) is not null;
    begin -- both or neither
      foreach v_table in array array['job', 'done'] loop
        v_name := partition_name(v_table, v_day);
        -- Built apart and then attached: attaching waits for no reader or writer of the parent.
        execute format('create table %I (like %I including defaults including constraints including indexes)',
                       v_name, v_table);
        if v_table = 'done' then
          execute format('alter table %I set (toast_tuple_target = 8160)', v_name);
        end if;
        execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                       v_table, v_name, start_of_day(v_day), start_of_day(v_day + 1));
      end loop;
      v_added := v_added + 1;
    exception
      when check_violation then null; -- rows of that day are in the default partition
      when lock_not_available then exit; -- the next day would meet the same lock
    end;
  end loop;
  return v_added;
end $$;

-- Drops the oldest day whose jobs are all older than `p_keep`. Jobs that are still needed (not finished, dead, or finished
-- later than that) are copied to the default partitions, where prune finds them later. Nobody can use `job` and `done`
-- meanwhile, so a day with more than `p_limit` such jobs stays. Returns the day, or null if there is no day to drop or the
-- tables are in use.
create or replace function drop_oldest_day(p_keep interval default interval '7 days', p_limit int default 10000)
returns date
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set lock_timeout = '50ms'
as $$
declare
  c_tries   constant int := 3;
  c_seconds constant float8 := 0.2; -- the pause between two tries, in which waiting statements go on
  v_day     date;
begin
  if not lock_partitions() then
    return null;
  end if;
  select min(day) into v_day
  from (
    select right(inhrelid::regclass::text, 8)::date as day
    from pg_inherits
    where inhparent = 'job'::regclass and inhrelid <> 'job_default'::regclass
  ) as days
  where day + 1 <= ((now() - p_keep) at time zone 'utc')::date
    and cardinality(survivors_of(day, p_keep, p_limit + 1)) <= p_limit;
  for n in 1 .. c_tries loop
    exit when v_day is null;
    begin
      perform drop_day(v_day, p_keep);
      return v_day;
    exception
      when lock_not_available then perform pg_sleep(c_seconds * (0.5 + random()));
    end;
  end loop;
  return null;
end $$;

-- The locks are taken in three steps, because some statements use `job` first and others `done`:
-- 1. Block writers of `done`. They hold no lock on `job` yet: a settle uses `job` after `done`, and so does the claim that
--    settles.
-- 2. Block everybody who uses `job`. Statements that are in it already are not blocked by step 1, because they only read
--    `done`.
-- 3. Block readers of `done`. Those that also hold `job` have ended by then. A statement that locks in another order (a
--    transaction that enqueues and then completes, a list of completed jobs) ends in our lock_timeout, which is shorter
--    than deadlock_timeout.
-- After that nobody else holds a partition, except statements that name it directly, and autovacuum.
create or replace function drop_day(p_day date, p_keep interval) returns void
language plpgsql as $$
declare
  v_job  text := partition_name('job', p_day);
  v_done text := partition_name('done', p_day);
  v_ids  uuid[];
begin
  lock table only done in share row exclusive mode;
  lock table only job in access exclusive mode;
  lock table only done in access exclusive mode;
  execute format('lock table job_default, %I, done_default, %I in access exclusive mode nowait', v_job, v_done);
  v_ids := survivors_of(p_day, p_keep, null); -- in a snapshot that is younger than the locks
  execute format('alter table job detach partition %I', v_job);
  execute format('alter table done detach partition %I', v_done);
  execute format('insert into job select * from %I where id = any($1)', v_job) using v_ids;
  execute format('insert into done select * from %I where finished_at > $1', v_done) using now() - p_keep;
  execute format('drop table %I, %I', v_job, v_done);
  insert into dropped_day (day, next_id) values (p_day, start_of_day(p_day)) on conflict do nothing;
end $$;

-- The jobs of a day that are still needed, up to a number of each kind. They are found through the tables that hold their
-- states, not by reading the whole day, and in one snapshot, in which each job is in one table.
create or replace function survivors_of(p_day date, p_keep interval, p_limit int) returns uuid[]
language sql stable
as $$
  with day as materialized (
    select start_of_day(p_day) as low, start_of_day(p_day + 1) as high
  )
  select array(
    (select id from ready where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from scheduled where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from closed where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from lease cross join unnest(ids) as id
     where id >= (select low from day) and id < (select high from day) limit p_limit)
    union all
    (select id from done cross join unnest(ids) as id
     where hi_id >= (select low from day) and hi_id < (select high from day) and finished_at > now() - p_keep
     limit p_limit))
$$;

-- Removes what is past its retention, a bounded number of rows in each call: closed jobs, finished jobs of the default
-- partitions, what belonged to jobs of dropped days, idempotency keys, minutes of the books, and records of rounds and
-- enqueue errors. A job and its state are removed together.
create or replace function prune(
  p_limit int, p_keep interval default interval '7 days', p_keep_dead interval default interval '30 days'
) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_oldest uuid := id_at(now() - p_keep);
  v_closed uuid[];
  v_done   uuid[];
  v_keys   int;
begin
  if not lock_partitions() then
    return 0;
  end if;
  with old as materialized (
    (select id from closed
     where status = 'dead' and id < id_at(now() - p_keep_dead) and closed_at <= now() - p_keep_dead
     order by id limit p_limit)
    union all
    (select id from closed
     where status = 'discarded' and id < v_oldest and closed_at <= now() - p_keep order by id limit p_limit)
    union all
    (select id from closed
     where status = 'cancelled' and id < v_oldest and closed_at <= now() - p_keep order by id limit p_limit)
  ),
  removed as (
    delete from closed where id = any(array(select id from old)) returning id
  )
  select array_agg(id) into v_closed from removed;

  with removed as (
    delete from done_default
    where ctid = any(array(
      select ctid from done_default
      where hi_id < v_oldest and finished_at <= now() - p_keep order by hi_id limit p_limit))
    returning ids
  )
  select array_agg(id) into v_done from removed cross join unnest(ids) as id;

  delete from idempotency
  where key_hash = any(array(
    select key_hash from idempotency where expires_at <= now() order by expires_at limit p_limit));
  get diagnostics v_keys = row_count;

  delete from round
  where id = any(array(select id from round where ended_at <= now() - p_keep order by id limit p_limit));
  delete from enqueue_error
  where ctid = any(array(select ctid from enqueue_error where at <= now() - p_keep order by at limit p_limit));
  delete from tally
  where (minute, lane) in (
    select minute, lane from tally
    where minute > '-infinity' and minute < now() - interval '25 hours'
    order by minute limit p_limit);
  return v_keys + forget_jobs(v_closed || v_done) + prune_dropped_day(p_limit);
end $$;

create or replace function forget_jobs(p_ids uuid[]) returns int
language plpgsql as $$
declare
  v_jobs int;
begin
  delete from output where id = any(p_ids);
  delete from failed_attempt where id = any(p_ids);
  delete from job_tag where id = any(p_ids);
  delete from job where id = any(p_ids);
  get diagnostics v_jobs = row_count;
  return v_jobs;
end $$;

-- Walks through a dropped day's ids and removes rows that belong to no job any more.
create or replace function prune_dropped_day(p_limit int) returns int
language plpgsql as $$
declare
  v_dropped dropped_day%rowtype;
  v_upto    uuid;
  v_rows    int;
  v_pruned  int := 0;
  v_table   text;
begin
  select * into v_dropped from dropped_day order by day limit 1 for update skip locked;
  if not found then
    return 0;
  end if;
  v_upto := start_of_day(v_dropped.day + 1);
  -- as far as the table with the most rows can go with this limit
  foreach v_table in array array['output', 'failed_attempt', 'job_tag'] loop
    execute format('select least($1, (select id from %I where id >= $2 and id < $1 order by id offset $3 limit 1))',
                   v_table)
    into v_upto using v_upto, v_dropped.next_id, p_limit;
  end loop;
  foreach v_table in array array['output', 'failed_attempt', 'job_tag'] loop
    execute format('delete from %I as hanging where id >= $1 and id < $2
                    and not exists (select from job where job.id = hanging.id)', v_table)
    using v_dropped.next_id, v_upto;
    get diagnostics v_rows = row_count;
    v_pruned := v_pruned + v_rows;
  end loop;
  if v_upto = start_of_day(v_dropped.day + 1) then
    delete from dropped_day where day = v_dropped.day;
  else
    update dropped_day set next_id = v_upto where day = v_dropped.day;
  end if;
  return v_pruned;
end $$;
$file$,
$file$-- pause, resume: claims do not choose the lanes of a paused queue or type. Other lanes are claimed at the same cost as
-- before. Both answer whether that changed anything, and both write the audit in any case.
--
-- Two that pause the same thing at once: the primary key of `pause` lets one insert its row, the other one finds it.

create or replace function pause(p_actor text, p_kind text, p_name text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
declare
  v_changed boolean;
begin
  insert into pause (kind, name) values (p_kind, p_name) on conflict do nothing;
  v_changed := found;
  perform write_audit(p_actor, 'pause', p_kind || ' ' || p_name,
                      jsonb_build_object('paused', not v_changed), jsonb_build_object('paused', true));
  return v_changed;
end $$;

create or replace function resume(p_actor text, p_kind text, p_name text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
declare
  v_changed boolean;
begin
  delete from pause where kind = p_kind and name = p_name;
  v_changed := found;
  perform write_audit(p_actor, 'resume', p_kind || ' ' || p_name,
                      jsonb_build_object('paused', v_changed), jsonb_build_object('paused', false));
  return v_changed;
end $$;

-- True for a queue that has or had jobs, or is paused.
create or replace function knows_queue(p_name text) returns boolean
language sql stable
security definer
set search_path from current
as $$
  select exists (select from lane where queue = p_name)
      or exists (select from pause where kind = 'queue' and name = p_name)
$$;
$file$,
$file$-- check_reach: checks in production that a claim can find every pending job. advance-cursors.sql proves that it can.
-- This check is for rows that somebody changed by hand, and for a mistake in the proof.
--
-- It reads the tables page by page, some pages in each call, and goes on where it stopped. An index scan before the
-- cursors would step over every dead row that a pinned snapshot keeps, so its cost would have no bound.

-- The next pages of a table, as a range of row positions. After the last page it starts again at the first.
create or replace function next_pages(p_table text, p_pages int, out first tid, out beyond tid)
language plpgsql as $$
declare
  v_page bigint;
begin
  insert into sweep as known (table_name, page) values (p_table, 0)
  on conflict (table_name) do update
  set page = case when (known.page + p_pages) * current_setting('block_size')::int < pg_relation_size(p_table::regclass)
                  then known.page + p_pages else 0 end
  returning page into v_page;
  first := format('(%s,0)', v_page)::tid;
  beyond := format('(%s,0)', v_page + p_pages)::tid;
end $$;

-- Returns how many jobs lay before the cursors without a gap that covers them. It makes them reachable: a row of `ready`
-- gets a new seq, and for rows of `scheduled` it writes a gap, which the next advance closes. Each statement reads rows,
-- cursors and gaps in one snapshot.
create or replace function check_reach(p_pages int default 4000, p_limit int default 1000) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_pages    record;
  v_ready    int;
  v_late     int;
  v_earliest timestamptz;
begin
  v_pages := next_pages('ready', p_pages);
  with newest as materialized (
    select cursor_seqs from cursors order by id desc limit 1
  ),
  unreachable as materialized (
    select ready.ctid as tid
    from newest cross join ready
    where ready.ctid >= v_pages.first and ready.ctid < v_pages.beyond and seq < newest.cursor_seqs[lane]
      and not exists (
        select from cursor_gap
        where cursor_gap.cursor_seqs is not null and coalesce(cursor_gap.cursor_seqs[ready.lane], 0) <= ready.seq)
    limit p_limit
    for update of ready skip locked
  )
  update ready set seq = nextval('ready_seq') where ctid = any(array(select tid from unreachable));
  get diagnostics v_ready = row_count;

  v_pages := next_pages('scheduled', p_pages);
  with newest as materialized (
    select scheduled_cursor from cursors order by id desc limit 1
  )
  select count(*), min(run_at) into v_late, v_earliest
  from newest cross join scheduled
  where scheduled.ctid >= v_pages.first and scheduled.ctid < v_pages.beyond and run_at < newest.scheduled_cursor
    and not exists (select from cursor_gap where cursor_gap.scheduled_cursor <= run_at);
  if v_late > 0 then
    insert into cursor_gap (writer, scheduled_cursor) values ('xid/' || pg_current_xact_id(), v_earliest)
    on conflict do nothing;
  end if;
  return v_ready + v_late;
end $$;
$file$,
$file$-- What the reaper does. Each step is bounded, and harmless when it is run twice or by two at once.

-- A lease that ran out was held by a process that died. Its jobs come back after a backoff, or they are dead (abandoned)
-- when their attempts are used up. The limit counts jobs: the lease that reaches it is the last one.
--
-- Any of these jobs may be what ended its invocation, but most likely none or one is. So they go on as isolated jobs, in
-- groups of a size that isolated_group_size says.
create or replace function reap_leases(
  p_limit    int,
  -- { default: backoff, types: { type: backoff } }, where a backoff is { waits: [seconds after attempt 1, 2, …], jitter }.
  -- Without it jobs come back at once.
  p_backoffs jsonb default null,
  out returned int, out buried int
)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_leases  tid[] := lock_expired_leases(p_limit);
  v_group   record;
  v_lane    int;
  v_backoff jsonb;
begin
  returned := 0;
  buried := 0;
  -- The rows are locked, so what this reads is what is deleted below.
  for v_group in
    select lane.lane, lane.queue, lane.type, lane.priority, isolated.group_size, count(*)::int as jobs,
           array_agg(entry.id) as ids, array_agg(isolated.attempt) as attempts,
           array_agg(isolated.abandonments) as abandonments, array_agg(lease.started_at) as started_at
    from lease
    join lane using (lane)
    cross join lateral unnest(ids, attempts, abandonments) as entry(id, attempt, abandonments)
    cross join lateral (
      select coalesce(entry.attempt, 1) as attempt, coalesce(entry.abandonments, 0) + 1 as abandonments,
             isolated_group_size(coalesce(entry.abandonments, 0) + 1, max_attempts - coalesce(entry.attempt, 1))
               as group_size
      from job where job.id = entry.id
    ) as isolated
    where lease.ctid = any(v_leases)
    group by lane.lane, isolated.group_size
  loop
    v_backoff := coalesce(p_backoffs -> 'types' -> v_group.type, p_backoffs -> 'default');
    -- Before the statements that move jobs: it inserts a lane that is missing, and may wait for another that does so.
    v_lane := lane_of(v_group.queue, v_group.type, v_group.priority, v_group.group_size);
    insert into ledger (lane, leased) values (v_group.lane, -v_group.jobs), (v_lane, v_group.jobs);
    buried := buried + cardinality(fail_jobs(array(
      select row(id, v_lane, attempt, abandonments, started_at, 'retry', null, 'the lease ran out', null,
                 backoff_seconds(attempt, v_backoff), null)::settled_job
      from unnest(v_group.ids, v_group.attempts, v_group.abandonments, v_group.started_at)
        as job(id, attempt, abandonments, started_at)), 'abandoned'));
    returned := returned + v_group.jobs;
  end loop;
  delete from lease where ctid = any(v_leases);
  returned := returned - buried;
end $$;

-- A settle that holds a lease's lock is just in time, so that lease is left out.
create or replace function lock_expired_leases(p_limit int) returns tid[]
language sql as $$
  select array_agg(tid)
  from (
    select tid, sum(jobs) over (order by deadline, tid) - jobs as jobs_before
    from (
      select ctid as tid, deadline, cardinality(ids) as jobs
      from lease where deadline < now() order by deadline limit p_limit
      for update skip locked
    ) as expired
  ) as in_order
  where jobs_before < p_limit
$$;

-- How many isolated jobs are claimed together at most. Groups take little longer than all jobs at once would. A group that
-- ends its invocation again is split into smaller ones, and the third time each job runs alone. A job that has too few
-- attempts left for a group runs alone at once, since its last attempt must not depend on others. So a job that ends its
-- invocation is alone in its fourth, and no other job dies with it.
create or replace function isolated_group_size(p_abandonments int, p_attempts_left int) returns smallint
language sql immutable
return case when p_attempts_left < 2 then 1
            when p_abandonments = 1 then 32
            when p_abandonments = 2 then 6
            else 1 end::smallint;

-- Reads the wait from the list that core/policy/backoff.ts made. The last one is that of all later attempts.
create or replace function backoff_seconds(attempt int, backoff jsonb) returns float8
language sql volatile
return coalesce(coalesce(backoff -> 'waits' -> (attempt - 1), backoff -> 'waits' -> -1)::float8
                + random() * (backoff -> 'jitter')::float8, 0);

-- Buries pending jobs that have expired. Those whose producer chose a time are listed in `expiry`. All others expire 30
-- days after their creation, which is in their id. A job that is being processed may finish. If it comes back, the
-- next claim buries it.
create or replace function reap_expired(p_limit int) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_oldest uuid := id_at(now() - interval '720 hours');
  v_ids    uuid[];
  v_buried int;
begin
  with due as materialized (
    select ctid as tid from expiry where expires_at <= now() order by expires_at limit p_limit for update skip locked
  ),
  removed as (
    delete from expiry where ctid = any(array(select tid from due)) returning id
  )
  select array_agg(id) into v_ids from removed;

  v_ids := v_ids
    || array(select old.id from (select id from ready where id < v_oldest order by id) as old
             cross join lateral (select from job where job.id = old.id and expires_at is null offset 0) as by_default
             limit p_limit)
    || array(select old.id from (select id from scheduled where id < v_oldest order by id) as old
             cross join lateral (select from job where job.id = old.id and expires_at is null offset 0) as by_default
             limit p_limit);

  with expired as materialized (
    select id from job where id = any(v_ids) and expiry_of(id, expires_at) <= now()
  ),
  from_ready as (
    delete from ready where id = any(array(select id from expired)) returning id, lane, attempt, abandonments
  ),
  from_scheduled as (
    delete from scheduled where id = any(array(select id from expired)) returning id, lane, attempt, abandonments
  ),
  gone as materialized (
    select *, 0 as scheduled from from_ready union all select *, 1 from from_scheduled
  ),
  closed as (
    insert into closed (id, status, reason, closed_at, lane, attempt, abandonments)
    select id, 'dead', 'expired', now(), lane, attempt, abandonments from gone
  ),
  booked as (
    insert into ledger (lane, pending, scheduled, dead, expired)
    select lane, -count(*), -sum(scheduled), count(*), count(*) from gone group by lane
  )
  select count(*) into v_buried from gone;
  return v_buried;
end $$;
$file$,
$file$-- replay: dead jobs become pending again, one by its id or many by their type. They start from attempt 0 and keep their
-- errors. Every replay writes the audit.
--
-- Replays and discards of the same job lock its row in `closed`. The first one changes it. The others wait, then find that
-- the row is gone or no longer dead.

-- Answers as answer_with_job does; `applied` is false when the job is not dead. A new payload is audited with the old one.
create or replace function replay(p_actor text, p_id uuid, p_payload jsonb default null) returns jsonb
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_before jsonb;
begin
  select jsonb_build_object('status', closed.status, 'dead_reason', closed.reason, 'attempts', closed.attempt)
         || case when p_payload is null then '{}' else jsonb_build_object('payload', job.payload) end
  into v_before
  from closed join job using (id)
  where closed.id = p_id and closed.status = 'dead'
  for update of closed;
  if not found then
    return answer_with_job(p_id, false);
  end if;
  perform revive(array[p_id], p_payload);
  perform write_audit(p_actor, 'replay', 'job ' || p_id, v_before,
    jsonb_build_object('status', 'pending', 'attempts', 0)
    || case when p_payload is null then '{}' else jsonb_build_object('payload', p_payload) end);
  return answer_with_job(p_id, true);
end $$;

-- Answers how many jobs of each queue are pending again. One row of the audit names all of them.
create or replace function replay_many(
  p_actor text, p_type text, p_reason text, p_count int, p_seconds_apart float8 default 0
)
returns table (queue text, replayed bigint)
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_ids uuid[] := revive(array(select id from dead_letters_of(p_type, p_reason, p_count)), null, p_seconds_apart);
begin
  perform write_audit(p_actor, 'replay many', 'type ' || p_type,
    jsonb_build_object('status', 'dead', 'dead_reason', p_reason),
    jsonb_build_object('status', 'pending', 'replayed', cardinality(v_ids), 'ids', to_jsonb(v_ids)));
  return query
    select lane.queue, count(*)
    from job join lane using (lane)
    where job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)]
    group by lane.queue;
end $$;

-- The oldest dead jobs of a type, at most `p_count`; with a reason, only those that died of it.
create or replace function dead_letters_of(p_type text, p_reason text, p_count int) returns setof closed
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select *
  from closed
  where status = 'dead'
    and lane = any(array(select lane.lane from lane where lane.type = p_type))
    and (p_reason is null or reason = p_reason)
  order by id
  limit p_count
$$;

-- Moves the jobs that are dead from `closed` to `ready`, and answers their ids in order. With `p_seconds_apart` they become
-- due one after the other, so that a replay of many is not a second outage.
create or replace function revive(p_ids uuid[], p_payload jsonb default null, p_seconds_apart float8 default 0)
returns uuid[]
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
  v_fault     text := payload_fault_of(p_payload);
  v_ids       uuid[];
  v_lanes     int[];       -- of each job while it was dead
  v_old_lanes int[];       -- each of them once
  v_new_lanes int[];       -- where the jobs of each go
  v_earliest  timestamptz; -- run_at
begin
  if v_fault is not null then
    perform refuse(v_fault);
  end if;
  -- Every replay locks in the order of the ids, so two of them cannot deadlock.
  with locked as materialized (
    select id from closed where id = any(p_ids) and status = 'dead' order by id for update
  ),
  revived as (
    delete from closed where id = any(array(select id from locked)) returning id, lane
  )
  select coalesce(array_agg(id order by id), '{}'), array_agg(lane order by id) into v_ids, v_lanes from revived;

  perform renew(v_ids, p_payload);

  -- An isolated job goes back to the ordinary lane of its type. The lanes come before the statement that moves the jobs:
  -- lane_of inserts a lane that is missing, and may wait for another transaction that does the same.
  select array_agg(lane), array_agg(lane_of(queue, type, priority)) into v_old_lanes, v_new_lanes
  from lane where lane = any(v_lanes);

  with revived as materialized (
    select dead.id, move.old_lane, move.new_lane as lane, (dead.place - 1) * p_seconds_apart as seconds
    from unnest(v_ids, v_lanes) with ordinality as dead(id, lane, place)
    join unnest(v_old_lanes, v_new_lanes) as move(old_lane, new_lane) on move.old_lane = dead.lane
    order by dead.place
  ),
  readied as (
    insert into ready (seq, id, lane) select nextval('ready_seq'), id, lane from revived where seconds <= 0
  ),
  postponed as (
    insert into scheduled (run_at, id, lane)
    select clock_timestamp() + make_interval(secs => seconds), id, lane from revived where seconds > 0
    returning run_at
  ),
  booked as (
    insert into ledger (lane, dead, pending, scheduled)
    select old_lane, -count(*), null::bigint, null::bigint from revived group by old_lane
    union all
    select lane, null, count(*), count(*) filter (where seconds > 0) from revived group by lane
  )
  select min(run_at) into v_earliest from postponed;
  perform keep_reachable(v_earliest);
  return v_ids;
end $$;

-- A job that is about to expire gets 30 days more, or it would die again. In hours: the length of 30 days depends on the
-- session's time zone. `p_ids` are sorted, so that a day's partition can be left out by its bounds.
create or replace function renew(p_ids uuid[], p_payload jsonb) returns void
language sql as $$
  with renewed as (
    update job
    set payload = coalesce(p_payload, payload),
        expires_at = case when expiry_of(id, expires_at) <= now() + interval '24 hours'
                          then now() + interval '720 hours' else expires_at end
    where id = any(p_ids) and id >= p_ids[1] and id <= p_ids[cardinality(p_ids)]
      and (p_payload is not null or expiry_of(id, expires_at) <= now() + interval '24 hours')
    returning id, expires_at
  )
  insert into expiry (expires_at, id) select expires_at, id from renewed where expires_at is not null
$$;
$file$,
$file$-- Rounds: records what each one did, and tells a new one how much there is to do.

create or replace function record_round(p_kind text, p_queue text, p_ms float8, p_report jsonb) returns bigint
language sql
security definer
set search_path from current
as $$
  insert into round (kind, queue, started_at, ended_at, claimed, completed, failed, released, lost, claim_ms,
                     reason, message, steps)
  select p_kind, p_queue, ended_at - make_interval(secs => greatest(p_ms, 0) / 1000), ended_at,
         coalesce(report.claimed, 0), coalesce(report.completed, 0), coalesce(report.failed, 0),
         coalesce(report.released, 0), coalesce(report.lost, 0), report.claim_ms, coalesce(report.end, 'done'),
         left(report.message, 1000), report.steps
  from jsonb_to_record(p_report)
    as report(claimed int, completed int, failed int, released int, lost int, claim_ms float8, "end" text,
              message text, steps jsonb),
  clock_timestamp() as ended_at
  returning id
$$;

-- Counts the due jobs of these types in each queue, up to p_cap for each lane. That is enough to decide how many drains
-- to start. Paused lanes count nothing, and neither do types whose open breaker has just let a probe through.
create or replace function backlog(p_types text[], p_cap int) returns table (queue text, due bigint)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  with promoted_soon as (
    select lane, count(*) as jobs
    from (select lane from scheduled
          -- If the clock has stepped back, a cursor may lie ahead of it. Then all rows are read.
          where run_at >= coalesce((select case when at <= clock_timestamp() then scheduled_cursor end
                                    from cursors order by id desc limit 1), '-infinity')
            and run_at <= now()
          order by run_at limit p_cap) as due
    group by lane
  )
  select lanes.queue, sum(waiting.jobs + coalesce(promoted_soon.jobs, 0))::bigint
  from (
    select lane, queue, coalesce(low, 0) as low
    from lane
    left join unnest((select cursor_seqs from cursors order by id desc limit 1)) with ordinality as cursor(low, lane) using (lane)
    where type = any(p_types)
      and type <> all(array(select name from pause where kind = 'type'))
      and queue <> all(array(select name from pause where kind = 'queue'))
      and type <> all(array(
        select type from breaker where closed_at is null and not is_probe_due(probed_at, clock_timestamp())))
    offset 0
  ) as lanes
  cross join lateral (
    select count(*) as jobs
    from (select from ready where ready.lane = lanes.lane and seq >= lanes.low order by seq limit p_cap) as ahead
  ) as waiting
  left join promoted_soon using (lane)
  group by lanes.queue
  having sum(waiting.jobs + coalesce(promoted_soon.jobs, 0)) > 0
$$;
$file$,
$file$-- The version of the schema: a number that rises whenever the Worker needs something that the version before lacks.
-- src/core/schema-version.ts has the number that the Worker needs. docs/migrations.md says when to raise both.
create or replace function schema_version() returns int
language sql immutable parallel safe
return 1;

-- A newer schema is fine: it still has all that an older Worker calls.
create or replace function require_schema_version(p_version int) returns int
language plpgsql
security definer
set search_path from current
as $$
begin
  if schema_version() < p_version then
    raise exception using errcode = 'SL503',
      message = format('Sluice''s schema has version %s and this Worker needs version %s: run `npx sluice migrate`',
                       schema_version(), p_version);
  end if;
  return schema_version();
end $$;
$file$,
$file$-- settle one: what became of one claimed job. Answers as answer_with_job does; `applied` is false when the lease is lost,
-- and the job then shows what happened instead. `p_outcomes` holds one outcome in the form that settle takes, null for a
-- completion without output.
create or replace function settle_one(p_id uuid, p_key uuid, p_outcomes jsonb default null) returns jsonb
language plpgsql
security definer
set search_path from current
as $$
declare
  v_status text := (settle(array[p_id], array[p_key], p_outcomes))[1];
begin
  return answer_with_job(p_id, v_status is not null);
end $$;
$file$,
$file$-- settle: applies the outcomes of up to a thousand claimed jobs. Each outcome is fenced: it applies only while a lease with
-- the given key still holds the job. The answer has the new status of each job, or null where it did not apply.
--
-- Outcomes come in the order of the ids, { outcome, output?, message?, detail?, seconds?, uses? }. Null means that all
-- jobs are completed without an output:
--   complete   done, with an output if there is one
--   retry      failed: again in `seconds`, or dead (exhausted) when the attempts are used up
--   bury       failed: dead (fatal) at once
--   snooze     again in `seconds`, and the attempt does not count
--   release    again at once, and the attempt does not count
-- `uses` is how many attempts the claim counts as, where that is not the usual number: a reconciled job's run is a snooze
-- that uses 1, and the look after it uses 0, since the two are one attempt.
--
-- Jobs leave their leases in one of two ways, which agree. Most settles complete all that one claim still holds:
-- complete_whole_leases moves whole rows from `lease` to `done`. Everything else goes job by job (remove_from_leases),
-- which for whole leases would do the same: delete each lease, and write the same ids to `done` and the same numbers
-- to the books.

create or replace function settle(p_ids uuid[], p_keys uuid[], p_outcomes jsonb default null)
returns text[]
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_jobs settled_job[];
  v_dead uuid[] := '{}';
begin
  if p_outcomes is null and complete_whole_leases(p_ids, p_keys) then
    return array_fill('completed'::text, array[cardinality(p_ids)]);
  end if;

  v_jobs := remove_from_leases(p_ids, p_keys, p_outcomes);
  if p_outcomes is null then
    perform complete_jobs(v_jobs);
  else
    perform complete_jobs(array(select job from unnest(v_jobs) as job where job.outcome = 'complete'));
    v_dead := fail_jobs(array(select job from unnest(v_jobs) as job where job.outcome <> 'complete'));
  end if;

  return array(
    select case when job.id is null then null
                when job.outcome = 'complete' then 'completed'
                when job.id = any(v_dead) then 'dead'
                else 'pending' end
    from unnest(p_ids) with ordinality as request(id, request_index)
    left join unnest(v_jobs) as job on job.request_index = request.request_index
    order by request.request_index);
end $$;

-- True: these jobs are all that the leases of one key hold, and they are completed now.
--
-- It waits for nobody twice: where another transaction split the lease while this one waited for its lock, the rows that
-- are locked here do not hold all of the jobs, and the other way is taken. What is locked cannot change any more, and
-- the next statement has a fresh snapshot that sees it.
create or replace function complete_whole_leases(p_ids uuid[], p_keys uuid[]) returns boolean
language plpgsql as $$
declare
  v_tids tid[];
  v_ids  uuid[];
begin
  if p_keys[1] = all(p_keys)
     and end_of_bucket(p_ids[1]) = end_of_bucket(p_ids[cardinality(p_ids)]) then -- else `done` needs several rows
    select array_agg(tid) filter (where place = 1), array_agg(id order by id) into v_tids, v_ids
    from (
      select ctid as tid, ids from lease where key = p_keys[1] order by lock_order for update
    ) as locked cross join lateral unnest(ids) with ordinality as entry(id, place);
  end if;
  if v_ids is distinct from p_ids then
    return false;
  end if;

  with removed as (
    delete from lease where ctid = any(v_tids) returning lane, started_at, ids, attempts
  ),
  written as (
    insert into done (hi_id, lo_id, started_at, finished_at, lane, ids, attempts)
    select ids[cardinality(ids)], ids[1], started_at, now(), lane, ids, attempts from removed
  )
  insert into ledger (lane, leased, completed, processing_seconds)
  select lane, -cardinality(ids), cardinality(ids), date_part('epoch', now() - started_at) from removed;
  return true;
end $$;

-- Takes the jobs out of their leases and returns those that were still in them, each with its outcome. Leases that become
-- empty are deleted, the others keep the rest of their jobs.
--
-- One statement deletes and updates rows of the same table by their ctid. That is right only because lock_leases ran
-- before it as a statement of its own: nobody else can change these rows any more, and under READ COMMITTED each
-- statement takes a fresh snapshot, which sees them as they were locked.
create or replace function remove_from_leases(p_ids uuid[], p_keys uuid[], p_outcomes jsonb) returns settled_job[]
language plpgsql as $$
declare
  v_jobs settled_job[];
begin
  perform lock_leases(p_keys);
  with request as materialized (
    select *
    from rows from (
      unnest(p_ids), unnest(p_keys),
      jsonb_to_recordset(coalesce(p_outcomes, '[]'))
        as (outcome text, output jsonb, message text, detail jsonb, seconds float8, uses int)
    ) with ordinality as request(id, key, outcome, output, message, detail, seconds, uses, request_index)
  ),
  leased as materialized (
    select lease.ctid as tid, lease.key, lease.lane, lease.started_at, entry.*
    from lease
    cross join lateral unnest(ids, attempts, abandonments) with ordinality as entry(id, attempt, abandonments, place)
    where lease.key = any(p_keys)
  ),
  matched as materialized (
    select distinct on (leased.id, leased.key) -- if a job was named twice, the first counts
           leased.*, case when p_outcomes is null then 'complete' else request.outcome end as outcome, request.output,
           request.message, request.detail, request.seconds, request.uses, request.request_index
    from leased join request on request.id = leased.id and request.key = leased.key
    order by leased.id, leased.key, request.request_index
  ),
  remaining as materialized (
    select tid,
           array_agg(id order by place) as ids,
           case when count(attempt) > 0 then array_agg(attempt order by place) end as attempts,
           case when count(abandonments) > 0 then array_agg(abandonments order by place) end as abandonments
    from leased
    where tid = any(array(select tid from matched))
      and not exists (select from matched where matched.id = leased.id and matched.key = leased.key)
    group by tid
  ),
  emptied as (
    delete from lease
    where ctid = any(array(select tid from matched except select tid from remaining))
  ),
  shrunk as (
    update lease
    set ids = remaining.ids, attempts = remaining.attempts, abandonments = remaining.abandonments
    from remaining
    where lease.ctid = remaining.tid
  )
  select array_agg(row(id, lane, coalesce(attempt, 1) + attempts_beyond_claim(outcome, uses), coalesce(abandonments, 0),
                       started_at, outcome, nullif(output, 'null'), left(message, 4000), detail,
                       case when outcome = 'release' then 0 else coalesce(seconds, 0) end,
                       request_index)::settled_job order by id)
  into v_jobs
  from matched;
  return v_jobs;
end $$;

-- What an outcome adds to the number of the attempt that the claim began. fail_jobs gives one attempt back for a snooze
-- and a release, so these add one for an attempt that counts nevertheless.
create or replace function attempts_beyond_claim(p_outcome text, p_uses int) returns int
language sql immutable
return case when p_outcome in ('snooze', 'release') then coalesce(p_uses, 0) else coalesce(p_uses, 1) - 1 end;

-- Locks all leases of these keys. Whoever settles, extends or reaps one of them meanwhile waits here, or makes us wait.
-- An extend that we waited for may have replaced a lease by two new rows, which are not locked yet. So each look is
-- repeated, with a fresh snapshot, until it finds no row that is not locked.
--
-- Nobody deadlocks: all who wait lock in the order of the key and then of `lock_order`, which only rises, so a row that is
-- added later also comes later in the order. Under a stricter isolation level a lease that has changed since the
-- snapshot is a serialization failure here.
create or replace function lock_leases(p_keys uuid[]) returns void
language plpgsql as $$
declare
  v_key    uuid;
  v_locked tid[];
begin
  foreach v_key in array array(select distinct unnest(p_keys) order by 1) loop
    loop
      v_locked := array(select ctid from lease where key = v_key order by lock_order for update);
      exit when not exists (select from lease where key = v_key and ctid <> all(v_locked));
    end loop;
  end loop;
end $$;

-- Writes jobs to `done`: one packed row for each lane and 65-second bucket of ids, so that one job can be found by its id.
create or replace function complete_jobs(p_jobs settled_job[]) returns void
language plpgsql as $$
begin
  with packed as (
    select lane, min(started_at) as started_at, array_agg(id order by id) as ids,
           case when max(attempt) > 1 then array_agg(attempt order by id) end as attempts
    from unnest(p_jobs)
    group by lane, substring(uuid_send(id) for 4)
  ),
  written as (
    insert into done (hi_id, lo_id, started_at, finished_at, lane, ids, attempts)
    select ids[cardinality(ids)], ids[1], started_at, now(), lane, ids, attempts from packed
  ),
  kept as (
    insert into output (id, output)
    select id, output from unnest(p_jobs) where output is not null
  )
  insert into ledger (lane, leased, completed, processing_seconds)
  select lane, -count(*), count(*), date_part('epoch', now() - started_at) from unnest(p_jobs) group by lane, started_at;
end $$;

-- Applies every outcome but completion: the job goes back to `ready` or `scheduled`, or is closed for good. Returns the
-- ids of the jobs that are dead now.
create or replace function fail_jobs(p_jobs settled_job[], p_last_reason text default 'exhausted') returns uuid[]
language plpgsql as $$
declare
  v_dead     uuid[];
  v_earliest timestamptz; -- run_at
  v_ids      uuid[] := array(select id from unnest(p_jobs) order by 1);
begin
  if cardinality(p_jobs) = 0 then
    return '{}';
  end if;
  with judged as materialized (
    select failed.*,
           case when failed.outcome = 'bury' then 'fatal'
                when failed.outcome = 'retry' and failed.attempt >= job.max_attempts then p_last_reason
           end as reason,
           -- A snooze and a release give the attempt back. A reconciled job's look after its last run is one claim more
           -- than the maximum.
           least(failed.attempt - case when failed.outcome in ('snooze', 'release') then 1 else 0 end,
                 job.max_attempts) as used
    from unnest(p_jobs) as failed
    join job on job.id = failed.id
      and job.id = any(v_ids) and job.id >= v_ids[1] and job.id <= v_ids[cardinality(v_ids)]
  ),
  buried as (
    insert into closed (id, status, reason, closed_at, started_at, lane, attempt, abandonments)
    select id, 'dead', reason, now(), started_at, lane, used, abandonments from judged where reason is not null
  ),
  postponed as (
    insert into scheduled (run_at, id, lane, attempt, abandonments)
    select clock_timestamp() + make_interval(secs => seconds), id, lane, used, abandonments
    from judged where reason is null and seconds > 0
    returning run_at
  ),
  readied as (
    insert into ready (seq, id, lane, attempt, abandonments)
    select nextval('ready_seq'), id, lane, used, abandonments
    from judged where reason is null and seconds <= 0
  ),
  remembered as (
    insert into failed_attempt (id, attempt, started_at, failed_at, message, detail)
    select id, used, started_at, now(), coalesce(message, ''), detail
    from judged where outcome in ('retry', 'bury')
  ),
  booked as (
    insert into ledger (lane, leased, pending, scheduled, failed, dead)
    select lane, -count(*), nullif(count(*) filter (where reason is null), 0),
           nullif(count(*) filter (where reason is null and seconds > 0), 0),
           nullif(count(*) filter (where outcome in ('retry', 'bury')), 0),
           nullif(count(*) filter (where reason is not null), 0)
    from judged group by lane
  )
  select coalesce(array_agg(id), '{}'), (select min(run_at) from postponed) into v_dead, v_earliest
  from judged where reason is not null;
  perform keep_reachable(v_earliest);
  return v_dead;
end $$;

-- Completes a job in the handler's own transaction, so that both are committed or neither. False: the lease is lost, and
-- the handler must roll back.
create or replace function complete(job_id uuid, lease_key uuid, output jsonb default null) returns boolean
language sql
security definer
set search_path from current
as $$
  select settle(array[job_id], array[lease_key],
                case when output is not null
                     then jsonb_build_array(jsonb_build_object('outcome', 'complete', 'output', output)) end)
         = array['completed']
$$;
$file$,
$file$-- Counts for each minute, and how long jobs took, by queue and type. There may be thousands of pairs of queue and type,
-- so only those with the most jobs keep their names. All others are called "other".
create or replace function shown_pairs(p_pairs int) returns table (lane int, queue text, type text)
language sql stable
set search_path from current
as $$
  select lane, case when place <= p_pairs then queue else 'other' end, case when place <= p_pairs then type else 'other' end
  from lane
  join (
    -- The canary always keeps its name, so that readers can leave it out.
    select queue, type, row_number() over (order by type = 'sluice.canary' desc, sum(enqueued) desc nulls last, queue, type)
             as place
    from lane left join tally on tally.lane = lane.lane and minute = '-infinity'
    group by queue, type
  ) as pairs using (queue, type)
$$;

-- The last hour, with the current minute. Minutes without any change are left out.
create or replace function recent_minutes(p_pairs int)
returns table (minute timestamptz, queue text, type text, enqueued bigint, completed bigint, failed bigint,
               expired bigint, ready bigint)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  -- Materialized: the ledger has no index, and before PostgreSQL 18 reading it adds 10,000,000,000 to the cost of a plan
  -- while enable_seqscan is off. Beside that a join of each row with each row looks as cheap as any other.
  with unfolded as materialized (
    select date_bin('1 minute', at, '2000-01-01 00:00+00') as minute, lane, enqueued, completed, failed, expired,
           coalesce(pending, 0) - coalesce(scheduled, 0) as ready
    from ledger
    where at >= date_trunc('minute', now()) - interval '1 hour'
  )
  select minute, queue, type, coalesce(sum(enqueued), 0), coalesce(sum(completed), 0), coalesce(sum(failed), 0),
         coalesce(sum(expired), 0), coalesce(sum(ready), 0)
  from (
    select minute, lane, enqueued, completed, failed, expired, pending - scheduled as ready from tally
    where minute >= date_trunc('minute', now()) - interval '1 hour'
    union all
    select * from unfolded
  ) as entries
  join shown_pairs(p_pairs) using (lane)
  group by minute, queue, type
  having greatest(sum(enqueued), sum(completed), sum(failed), sum(expired), abs(sum(ready))) > 0
  order by minute, queue, type
$$;

-- Histograms, as of the last fold of the ledger. Empty buckets are left out.
create or replace function durations(p_pairs int, out buckets json, out bounds float8[])
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select
    (select coalesce(json_agg(summed), '[]')
     from (
       select queue, type, measure, bucket, sum(jobs) as jobs, sum(seconds) as seconds
       from duration join shown_pairs(p_pairs) using (lane)
       group by queue, type, measure, bucket
       order by queue, type, measure, bucket
     ) as summed),
    duration_bounds()
$$;
$file$,
$file$-- snapshot: what alarms, /metrics and /v1/stats are computed from, in one row. It counts no rows of a large table: sums
-- come from the books, waiting times from the oldest job of each lane, the rest from small tables. It takes one step for
-- each lane and window. What has a row for each lane and minute, or lane and bucket, is in shown-pairs.sql. All keys of
-- the JSON are in snake_case. The functions below run with the planner settings of snapshot(), which calls them.

-- Watch rounds date transaction ids. The row that a watch round inserts has the round's transaction id as its xmin, and
-- ended_at says when that was. `ages` has the ages of these ids, youngest first; `times` has their times.
create or replace function dated_ids(out ages bigint[], out times timestamptz[])
language sql stable
set search_path from current
as $$
  select coalesce(array_agg(age order by age), '{}'), coalesce(array_agg(ended_at order by age), '{}')
  from (select age(xmin)::bigint, ended_at from round where kind = 'watch' order by id desc limit 1000) as latest
$$;

-- The time of the last watch round before a transaction id was given out; null: the id is older than all of them.
-- width_bucket counts the dated ids that are younger than this one or as old, so the next one is the older neighbour.
create or replace function time_of_age(p_age bigint, p_ages bigint[], p_times timestamptz[]) returns timestamptz
language sql immutable
return p_times[width_bucket(p_age, p_ages) + 1];

-- Since when the oldest due jobs of each lane have been waiting.
create or replace function waiting_since() returns table (lane int, since timestamptz)
language sql stable
set search_path from current
as $$
  with newest_cursors as materialized (
    -- If the clock has stepped back, a cursor may lie ahead of it. Then all rows are read.
    select cursor_seqs, case when at <= clock_timestamp() then scheduled_cursor end as scheduled_cursor
    from cursors order by id desc limit 1
  ),
  starts as ( -- where the unclaimed part of each lane begins
    select lane, coalesce(low, 0) as low
    from lane
    -- Not `cursor_seqs[lane]`: that would decompress the whole array for each lane.
    left join unnest((select cursor_seqs from newest_cursors)) with ordinality as cursor(low, lane) using (lane)
    offset 0 -- a fence: without it the cursor is no value to seek by
  )
  -- A job waits from its creation or its scheduled time on. A job that came back by a retry, a snooze or a replay waits
  -- for less: it became ready after the last watch round before the transaction that inserted its row.
  select starts.lane,
         greatest(case when coalesce(job.scheduled_at, time_of_id(oldest.id)) <= now() -- else the clock stepped back
                       then coalesce(job.scheduled_at, time_of_id(oldest.id)) end,
                  time_of_age(oldest.age, ages, times))
  from starts
  cross join lateral (
    select id, age(ready.xmin)::bigint as age from ready
    where ready.lane = starts.lane and seq >= starts.low
    order by seq limit 1
  ) as oldest
  cross join lateral (select scheduled_at from job where job.id = oldest.id offset 0) as job
  cross join dated_ids()
  union all
  -- These are due, and no claim has promoted them yet. A stopped drain shows here, among those that are due the longest.
  select lane, run_at
  from (
    select scheduled.lane, run_at from scheduled
    where run_at >= coalesce((select scheduled_cursor from newest_cursors), '-infinity') and run_at <= now()
    order by run_at limit 1000
  ) as due
$$;

-- The books of each group, and the sums of the windows: both read the ledger, which is scanned once for the two.
create or replace function books_and_windows(p_windows int[], out groups json, out minutes json)
language sql stable
set search_path from current
as $$
  with unfolded as materialized (
    select lane, date_bin('1 minute', at, '2000-01-01 00:00+00') as minute, sum(enqueued) as enqueued, sum(pending) as pending,
           sum(scheduled) as scheduled, sum(leased) as leased, sum(completed) as completed, sum(failed) as failed, sum(dead) as dead,
           sum(discarded) as discarded, sum(cancelled) as cancelled, sum(expired) as expired
    from ledger
    group by 1, 2
  ),
  booked as ( -- as in the view `books`
    select * from tally where minute = '-infinity'
    union all
    select minute, lane, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired
    from unfolded
  ),
  groups as (
    select queue, type, priority,
           coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending,
           coalesce(sum(scheduled), 0) as scheduled,
           coalesce(sum(leased), 0) as leased, coalesce(sum(completed), 0) as completed,
           coalesce(sum(failed), 0) as failed, coalesce(sum(dead), 0) as dead,
           coalesce(sum(discarded), 0) as discarded, coalesce(sum(cancelled), 0) as cancelled,
           coalesce(sum(expired), 0) as expired,
           extract(epoch from now() - min(since)) as oldest_due_seconds
    from lane
    left join booked using (lane)
    left join (select lane, min(since) as since from waiting_since() group by lane) as oldest using (lane)
    group by queue, type, priority
    order by queue, type, priority
  ),
  window_of as ( -- the shortest window that has each minute of the last hour
    select date_trunc('minute', now()) - make_interval(mins => age) as minute,
           date_trunc('minute', now()) - make_interval(mins => min(window_minutes)) as window_start
    from generate_series(-1, 60) as age join unnest(p_windows) as window_minutes on window_minutes >= age
    group by age
  ),
  minutes as (
    select window_start as minute, queue, type, coalesce(sum(enqueued), 0) as enqueued,
           coalesce(sum(completed), 0) as completed, coalesce(sum(failed), 0) as failed,
           coalesce(sum(expired), 0) as expired, coalesce(sum(ready), 0) as ready
    from (
      select minute, lane, enqueued, completed, failed, expired, pending - scheduled as ready from tally
      where minute >= (select min(window_start) from window_of) -- null without windows, so no row
      union all
      select minute, lane, enqueued, completed, failed, expired, coalesce(pending, 0) - coalesce(scheduled, 0)
      from unfolded
    ) as entries
    join window_of using (minute)
    join lane using (lane)
    group by window_start, queue, type
    having greatest(sum(enqueued), sum(completed), sum(failed), sum(expired), abs(sum(ready))) > 0
    order by window_start, queue, type
  )
  select (select coalesce(json_agg(groups), '[]') from groups), (select coalesce(json_agg(minutes), '[]') from minutes)
$$;

-- The last five rounds of each kind, newest first.
create or replace function recent_rounds() returns json
language sql stable
set search_path from current
as $$
  select coalesce(json_agg(recent), '[]')
  from (
    select latest.kind, queue, started_at, ended_at, claimed, completed, failed, released, lost, reason, message, steps
    from unnest(array['drain', 'nudge', 'reap', 'watch']) as kinds(kind)
    cross join lateral (select * from round where round.kind = kinds.kind order by id desc limit 5) as latest
    order by latest.id desc
  ) as recent
$$;

-- The transaction that keeps dead rows alive the longest. Columns of other roles' sessions may be hidden, and a slot has
-- no start. Then the watch rounds date the transaction id that it holds.
create or replace function oldest_transaction() returns json
language sql stable
set search_path from current
as $$
  with holders as (
    select 'session' as source, xact_start as since, greatest(age(backend_xmin), age(backend_xid)) as age
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and (backend_xmin is not null or backend_xid is not null)
      and backend_type is distinct from 'autovacuum worker' -- it keeps no row alive
    union all
    select 'prepared', prepared, null from pg_prepared_xacts where database = current_database()
    union all
    select 'slot', null, greatest(age(xmin), age(catalog_xmin)) from pg_replication_slots
    union all
    select 'standby', null, age(backend_xmin) from pg_stat_replication
  )
  select json_build_object('seconds', seconds, 'source', source)
  from (
    select extract(epoch from now() - coalesce(
             since, time_of_age(age, ages, times), times[cardinality(times)], now())) as seconds,
           source
    from holders cross join dated_ids()
    where since is not null or age is not null
    order by seconds desc
    limit 1
  ) as oldest
$$;

-- Dead rows and the last vacuum of each table. The partitions of a table count together.
create or replace function table_health() returns json
language sql stable
set search_path from current
as $$
  select json_agg(tables)
  from (
    select regexp_replace(relname, '^(job|done)_(\d{8}|default)$', '\1') as "table",
           sum(pg_stat_get_dead_tuples(oid)) as dead_rows,
           max(greatest(pg_stat_get_last_vacuum_time(oid), pg_stat_get_last_autovacuum_time(oid))) as vacuumed_at
    from pg_class
    where relnamespace = (select oid from pg_namespace where nspname = current_schema()) and relkind = 'r'
    group by 1
    order by 1
  ) as tables
$$;

-- The median time of a claim, as the drains of the last minutes measured it; null: there was none.
create or replace function recent_claim_ms() returns float8
language sql stable
set search_path from current
as $$
  select percentile_cont(0.5) within group (order by claim_ms)
  from (
    (select claim_ms, ended_at from round where kind = 'drain' order by id desc limit 100)
    union all
    (select claim_ms, ended_at from round where kind = 'nudge' order by id desc limit 100)
  ) as claims
  where ended_at > now() - interval '5 minutes'
$$;

create or replace function snapshot(
  -- In minutes, at most 60. `minutes` has the sums of what lies between the starts of two windows, under the older one.
  p_windows int[] default '{}',
  out at timestamptz, out groups json, out minutes json, out rounds json, out running_since timestamptz,
  out open_breakers json, out live_workers int, out expired_lease_seconds float8, out oldest_transaction json,
  out tables json, out claim_ms float8, out enqueue_errors json, out impossible_states json
)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- the first row of a lane, without sorting all of them
set jit = off -- where a table has no index the plan looks expensive, and compiling it would take longer than running it
as $$
  select
    now(),
    books.groups,
    books.minutes,
    recent_rounds(),
    (select ended_at from round order by id limit 1),
    (select coalesce(json_agg(json_build_object('type', type, 'opened_at', opened_at)), '[]')
     from breaker where closed_at is null),
    (select count(distinct worker)::int from lease where deadline > now()),
    coalesce(extract(epoch from now() - (
      select deadline from lease where deadline < now() order by deadline limit 1)), 0),
    oldest_transaction(),
    table_health(),
    recent_claim_ms(),
    (select coalesce(json_agg(failing), '[]')
     from (
       select date_trunc('minute', enqueue_error.at) as minute, sum(errors) as errors
       from enqueue_error
       where enqueue_error.at >= date_trunc('minute', now()) - interval '1 hour'
       group by 1
       order by 1
     ) as failing),
    (select json_build_object('count', count(*), 'example',
              (select to_json(first)
               from (select kind, id, what from impossible_state order by seen_at, kind, id limit 1) as first))
     from impossible_state)
  from books_and_windows(p_windows) as books
$$;
$file$,
$file$-- take-alone: which jobs must not share a claim with others? There are two reasons, each with its own entry in lane_level:
--   needs_quota       the type has limits, or a breaker that is open or closing. A claim takes as many of its jobs as
--                     limits.sql allows.
--   group_sizes > 0   the lane holds isolated jobs. A claim takes one group, so that if one of its jobs ends the
--                     invocation once more, no job outside of the group is abandoned with it.

-- Takes jobs of a priority that has such lanes. Nothing has been taken before.
create or replace function take_alone_or_shared(p_batch claim_batch, p_level lane_level, p_queue text, p_limits jsonb)
returns claim_batch
language plpgsql as $$
declare
  v_shared lane_level := keep_shared_lanes(p_level);
begin
  p_batch := take_alone(p_batch, p_level, v_shared.oldest_seqs[1], p_queue, p_limits);
  if p_batch.taken is null and v_shared.lanes is not null then
    p_batch := take_oldest(p_batch, v_shared);
    p_batch.has_more := p_batch.has_more or p_batch.taken is not null; -- the jobs that must be claimed alone are left
  end if;
  return p_batch;
end $$;

-- Takes jobs of one type for one of these reasons, if they are older than the jobs of the shared lanes. If it takes any,
-- has_more is true, because the next claim has to look.
create or replace function take_alone(
  p_batch claim_batch, p_level lane_level, p_oldest_shared bigint, p_queue text, p_limits jsonb
) returns claim_batch
language plpgsql as $$
declare
  v_group record;
  v_quota record;
  v_batch claim_batch;
begin
  for v_group in
    select type, group_size, min(seq) as oldest_seq,
           row(p_level.priority, array_agg(lane order by seq), array_agg(type order by seq), array_agg(seq order by seq),
               array_agg(needs_quota order by seq), array_agg(group_size order by seq))::lane_level as level
    from unnest(p_level.lanes, p_level.types, p_level.oldest_seqs, p_level.needs_quota, p_level.group_sizes)
      as entry(lane, type, seq, needs_quota, group_size)
    where needs_quota or group_size > 0
    group by type, group_size
    order by min(seq)
  loop
    exit when p_oldest_shared < v_group.oldest_seq;
    continue when v_group.group_size > 0 and not may_take_isolated(p_queue);
    select * into v_quota from quota_of(v_group.type, p_limits);
    continue when v_quota.quota = 0;
    v_batch := p_batch;
    v_batch.jobs_left := least(p_batch.jobs_left, v_quota.quota, nullif(v_group.group_size, 0));
    if v_quota.is_trial then
      v_batch := take_tried(v_batch, v_group.level);
    else
      v_batch := take_oldest(v_batch, v_group.level);
    end if;
    if v_batch.taken is not null then
      v_batch.is_probe := v_quota.is_probe;
      v_batch.trial_type := case when v_quota.is_trial then v_group.type end;
      v_batch.jobs_left := 0; -- nothing else shares this claim
      v_batch.has_more := true;
      return v_batch;
    end if;
    p_batch.some_expired := v_batch.some_expired;
  end loop;
  return p_batch;
end $$;

-- A queue has one group of isolated jobs at a time. Whoever runs one claims nothing else meanwhile, so only one of a
-- queue's drains is kept busy that way. The advisory lock lasts until the claim has committed its lease, and the look
-- after it takes a fresh snapshot: the second of two claims is refused the lock, or it sees the lease of the first.
create or replace function may_take_isolated(p_queue text) returns boolean
language plpgsql as $$
begin
  return pg_try_advisory_xact_lock(hashtextextended(format('sluice.isolated.%s.%s', current_schema(), p_queue), 0))
    and not exists (
      select from lease join lane using (lane)
      where lease.deadline > clock_timestamp() and lane.queue = p_queue and lane.group_size > 0);
end $$;

-- For a breaker's probe or step: takes the job that probed last, then the jobs with the most attempts, because they are
-- the likeliest to succeed (breaker.sql). Each job is taken as a lane that ends with it.
create or replace function take_tried(p_batch claim_batch, p_level lane_level) returns claim_batch
language plpgsql as $$
declare
  -- Jobs to look at in each lane: about a millisecond. A job further back is found once it has been a probe.
  c_look_ahead constant int := 1000;
  -- Jobs to choose beyond those wanted, since other claims may have locked some: a few times what runs at once.
  c_spare      constant int := 20;
  v_probe      uuid := (select probe_id from breaker where type = p_level.types[1]);
  v_jobs       lane_level;
begin
  select p_level.priority, array_agg(lane order by place), array_agg(p_level.types[1]), array_agg(seq order by place),
         null, null
  into v_jobs
  from (
    select lane, seq, row_number() over (order by id is not distinct from v_probe desc, attempt desc, seq) as place
    from (
      select lane, seq, id, attempt from ready where id = v_probe and lane = any(p_level.lanes)
      union
      select ahead.*
      from unnest(p_level.lanes, p_level.oldest_seqs) as entry(lane, oldest_seq)
      cross join lateral (
        select lane, seq, id, attempt
        from ready where ready.lane = entry.lane and seq >= entry.oldest_seq order by seq limit c_look_ahead
      ) as ahead
    ) as waiting
    order by place
    limit p_batch.jobs_left + c_spare
  ) as tried;
  for n in 1 .. coalesce(cardinality(v_jobs.lanes), 0) loop
    exit when p_batch.jobs_left = 0;
    p_batch := take_lane(p_batch, v_jobs, n, v_jobs.oldest_seqs[n]);
  end loop;
  return p_batch;
end $$;
$file$,
$file$-- take: moves the oldest jobs of some lanes out of `ready` and into a batch.

-- Takes up to p_batch.jobs_left jobs, oldest first across all lanes of the level.
create or replace function take_oldest(p_batch claim_batch, p_level lane_level) returns claim_batch
language plpgsql as $$
declare
  c_no_end constant bigint := 9223372036854775807;
  v_wanted int := p_batch.jobs_left;
  v_lanes  int := cardinality(p_level.lanes);
  v_last   bigint; -- the seq of the last job that is wanted
begin
  if v_lanes > 1 then
    v_last := look_ahead(p_level, v_wanted);
    for n in 1 .. v_lanes loop
      exit when p_batch.jobs_left = 0 or (p_level.oldest_seqs[n] > v_last);
      p_batch := take_lane(p_batch, p_level, n, v_last);
    end loop;
    if p_batch.jobs_left < v_wanted then -- some were taken
      p_batch.has_more := p_batch.has_more or has_later_jobs(p_level, v_last);
      return p_batch;
    end if;
  end if;

  -- There is one lane; or other claims took or locked all that the look ahead has found: then whatever comes next in
  -- each lane.
  for n in 1 .. v_lanes loop
    p_batch := take_lane(p_batch, p_level, n, c_no_end);
    if p_batch.jobs_left = 0 then
      p_batch.has_more := p_batch.has_more or (n < v_lanes) or exists (
        select from ready
        where lane = p_level.lanes[n] and seq > p_batch.last_seq
        order by seq
        limit 1);
      exit;
    end if;
  end loop;
  return p_batch;
end $$;

-- How far the p_wanted oldest jobs of several lanes reach: the seq of the last of them. It locks nothing, so that no
-- job is locked which an older job of another lane then displaces.
--
-- Seqs are given out in order, so the wanted jobs of several lanes lie close together most often. A look with no bound
-- would read p_wanted rows of each lane; so the first looks are bounded, and a further one follows where they find too
-- few (a claim of 100 jobs of seven types took 0.87 of the time).
create or replace function look_ahead(p_level lane_level, p_wanted int) returns bigint
language plpgsql as $$
declare
  c_reaches constant int[] := array[2, 16, null]; -- times the number of wanted jobs; null: no bound
  v_oldest  bigint := p_level.oldest_seqs[1];
  v_reach   int;
  v_last    bigint;
  v_found   int;
begin
  if p_wanted = 1 then
    return v_oldest;
  end if;
  foreach v_reach in array c_reaches loop
    select max(seq), count(*) into v_last, v_found
    from (
      select ahead.seq
      from unnest(p_level.lanes, p_level.oldest_seqs) as entry(lane, oldest_seq)
      cross join lateral (
        select seq
        from ready
        where ready.lane = entry.lane and seq >= entry.oldest_seq
          and seq < coalesce(v_oldest + v_reach * p_wanted, 9223372036854775807)
        order by seq
        limit p_wanted
      ) as ahead
      order by ahead.seq
      limit p_wanted
    ) as wanted;
    exit when v_found = p_wanted;
  end loop;
  return coalesce(v_last, v_oldest);
end $$;

create or replace function has_later_jobs(p_level lane_level, p_seq bigint) returns boolean
language plpgsql as $$
begin
  return p_level.oldest_seqs[cardinality(p_level.oldest_seqs)] > p_seq
    or exists (
      select
      from unnest(p_level.lanes) as entry(lane)
      cross join lateral (
        select from ready where ready.lane = entry.lane and seq > p_seq order by seq limit 1
      ) as later);
end $$;

-- Takes the oldest jobs of the level's nth lane, up to p_last. It locks them, reads what they are, and removes them from
-- `ready`. A locked row keeps its place in the table, so its tid still names it in the statement that removes it.
create or replace function take_lane(p_batch claim_batch, p_level lane_level, n int, p_last bigint)
returns claim_batch
language plpgsql as $$
declare
  c_skip_marked_from constant int := 50; -- jobs; see lock_unmarked_jobs
  v_skip_marked      boolean := p_batch.jobs_left >= c_skip_marked_from and cardinality(p_level.lanes) = 1;
  v_lane             int := p_level.lanes[n];
  v_locked           locked_jobs;
  v_jobs             json;
  v_bytes            bigint;
  v_some_expired     boolean;
  v_waited           real[]; -- seconds, of the jobs that were not attempted before
begin
  loop
    if v_skip_marked then
      v_locked := lock_unmarked_jobs(v_lane, p_level.oldest_seqs[n], p_last, p_batch.jobs_left);
    else
      v_locked := lock_jobs(v_lane, p_level.oldest_seqs[n], p_last, p_batch.jobs_left);
    end if;
    if v_locked.ids is null then
      return p_batch;
    end if;

    select json_agg(json_build_array(id, payload, max_attempts, partition_key, traceparent, tags,
                                     case when id = any(v_locked.retried_ids) then errors_of(id) end) order by id),
           sum(payload_bytes(payload)),
           bool_or(expiry_of(id, expires_at) <= p_batch.at),
           array_agg(date_part('epoch', p_batch.at - coalesce(scheduled_at, time_of_id(id)))::real)
             filter (where id <> all(v_locked.retried_ids))
    into v_jobs, v_bytes, v_some_expired, v_waited
    from job
    where id = any(v_locked.ids)
      and id >= v_locked.ids[1] and id <= v_locked.ids[cardinality(v_locked.ids)]; -- names the partitions

    if v_some_expired then
      perform bury_expired(v_lane, v_locked.ids, p_batch.at);
      p_batch.some_expired := true;
      return p_batch;
    end if;
    exit when v_bytes <= p_batch.bytes_left or (p_batch.taken is null and cardinality(v_locked.ids) = 1);

    -- Too large for one answer: only as many as fit, and the claim is full with them.
    p_batch.has_more := true;
    p_batch.jobs_left := greatest(how_many_fit(v_locked, p_batch.bytes_left), (p_batch.taken is null)::int);
    if p_batch.jobs_left = 0 then
      return p_batch;
    end if;
    v_skip_marked := false; -- it would pass over what this claim has locked
  end loop;
  return add_to_batch(p_batch, p_level, n, v_locked, v_jobs, v_bytes, v_waited);
end $$;

-- Locks the oldest jobs of a lane that no other claim has locked. It locks no job beyond p_limit, not even to see that
-- there are more: another claim would pass over it and take a worse one.
create or replace function lock_jobs(
  p_lane int, p_first bigint, p_last bigint, p_limit int, p_skip_marked boolean default false
) returns locked_jobs
language plpgsql as $$
declare
  v_jobs              locked_jobs;
  v_most_attempts     smallint;
  v_most_abandonments smallint;
begin
  select array_agg(tid), array_agg(id order by id), array_agg(seq order by id), max(seq), max(attempt), max(abandonments)
  into v_jobs.tids, v_jobs.ids, v_jobs.seqs, v_jobs.last_seq, v_most_attempts, v_most_abandonments
  from (
    select ctid as tid, seq, id, attempt, abandonments
    from ready
    where lane = p_lane and seq >= p_first and seq <= p_last and (not p_skip_marked or xmax = 0)
    order by seq
    limit p_limit
    for update skip locked
  ) as locked;
  v_jobs.retried_ids := '{}';
  if v_most_attempts > 0 or v_most_abandonments > 0 then
    select case when v_most_attempts > 0 then array_agg((attempt + 1)::smallint order by id) end,
           case when v_most_abandonments > 0 then array_agg(abandonments order by id) end,
           coalesce(array_agg(id) filter (where attempt > 0), '{}')
    into v_jobs.attempts, v_jobs.abandonments, v_jobs.retried_ids
    from ready where ctid = any(v_jobs.tids);
  end if;
  return v_jobs;
end $$;

-- The same for a large claim from one lane, which passes over rows that bear a mark. A row that another claim has locked or
-- deleted bears that transaction's id in xmax. To find out that a row is locked costs more than to lock a free one.
-- Measured: claims of 100 on 8 connections take 0.85 of the time, claims of 10 gain nothing, so claims of 50 and more
-- do it (docs/decisions/speed.md).
--
-- The mark stays after the other claim was rolled back, so a marked row may be free. It must be taken when it is the
-- oldest, or when there are not enough without it: then nothing is passed over.
create or replace function lock_unmarked_jobs(p_lane int, p_first bigint, p_last bigint, p_limit int)
returns locked_jobs
language plpgsql as $$
declare
  v_jobs locked_jobs := lock_jobs(p_lane, p_first, p_last, p_limit, true);
begin
  if cardinality(v_jobs.ids) = p_limit and (p_first = any(v_jobs.seqs) or not lock_row(p_lane, p_first)) then
    return v_jobs;
  end if;
  return lock_jobs(p_lane, p_first, p_last, p_limit);
end $$;

-- False: another transaction has locked or removed it.
create or replace function lock_row(p_lane int, p_seq bigint) returns boolean
language plpgsql as $$
begin
  perform from ready where lane = p_lane and seq = p_seq for update skip locked;
  return found;
end $$;

create or replace function add_to_batch(
  p_batch claim_batch, p_level lane_level, n int, p_locked locked_jobs, p_jobs json, p_bytes bigint, p_waited real[]
) returns claim_batch
language plpgsql as $$
declare
  v_count int := cardinality(p_locked.ids);
begin
  delete from ready where ctid = any(p_locked.tids);
  insert into ledger (lane, pending, leased, waiting_seconds) values (p_level.lanes[n], -v_count, v_count, p_waited);

  p_batch.jobs_left := p_batch.jobs_left - v_count;
  p_batch.bytes_left := p_batch.bytes_left - p_bytes;
  p_batch.last_seq := p_locked.last_seq;
  p_batch.taken := p_batch.taken
    || row(p_level.lanes[n], p_level.types[n], p_level.priority, p_locked.ids, p_locked.seqs, p_locked.attempts,
           p_locked.abandonments, p_jobs)::taken_jobs;
  return p_batch;
end $$;

-- How many of these jobs, from the oldest on, have no more than p_bytes of payload together.
create or replace function how_many_fit(p_locked locked_jobs, p_bytes bigint) returns int
language sql stable as $$
  select count(*) filter (where bytes <= p_bytes)
  from (
    select sum(payload_bytes(job.payload)) over (order by entry.seq) as bytes
    from unnest(p_locked.ids, p_locked.seqs) as entry(id, seq) join job using (id)
    where job.id = any(p_locked.ids)
      and job.id >= p_locked.ids[1] and job.id <= p_locked.ids[cardinality(p_locked.ids)]
  ) as added_up
$$;

-- Closes those of the locked jobs that have expired.
create or replace function bury_expired(p_lane int, p_ids uuid[], p_now timestamptz) returns void
language sql as $$
  with expired as (
    select id from job
    where id = any(p_ids) and id >= p_ids[1] and id <= p_ids[cardinality(p_ids)] and expiry_of(id, expires_at) <= p_now
  ),
  removed as (
    delete from ready where id = any(array(select id from expired)) returning id, attempt, abandonments
  ),
  buried as (
    insert into closed (id, status, reason, closed_at, lane, attempt, abandonments)
    select id, 'dead', 'expired', now(), p_lane, attempt, abandonments from removed
  )
  insert into ledger (lane, pending, dead, expired)
  select p_lane, -count(*), count(*), count(*) from removed;
$$;
$file$,
$file$-- The rights of a role for the Worker that does not own the tables. Functions that may be called from outside are
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
    execute format('grant select on audit, books, breaker, migration, pause, round to %I', v_role);
    -- All columns but the hash.
    execute format('grant select (id, name, role, job_types, rate_limit_per_second, created_at, revoked_at, last_used_at) '
                   'on api_key to %I', v_role);
    for v_function in select oid from pg_proc where pronamespace = v_schema::regnamespace and prosecdef loop
      execute format('grant execute on function %s to %I', v_function, v_role);
    end loop;
  end loop;
end $$;
$file$]::text[])) as line;
commit;

-- partitions
begin isolation level read committed read write;
set local search_path to sluice, pg_temp;
select pg_advisory_xact_lock(hashtextextended('sluice.migrate.sluice', 0));
set local lock_timeout = '200ms';
set local client_min_messages = warning;
set local check_function_bodies = off;
select add_partitions();
select null as line where false;
commit;

create table if not exists sluice.done_20261117 partition of done FOR VALUES FROM ('01a1e6cd-0000-0000-0000-000000000000') TO ('01a1ebf4-0000-0000-0000-000000000000');
create table if not exists sluice.done_20261118 partition of done FOR VALUES FROM ('01a1ebf4-0000-0000-0000-000000000000') TO ('01a1f11a-0000-0000-0000-000000000000');
create table if not exists sluice.done_20261119 partition of done FOR VALUES FROM ('01a1f11a-0000-0000-0000-000000000000') TO ('01a1f640-0000-0000-0000-000000000000');
create table if not exists sluice.done_20261120 partition of done FOR VALUES FROM ('01a1f640-0000-0000-0000-000000000000') TO ('01a1fb67-0000-0000-0000-000000000000');
create table if not exists sluice.done_20261121 partition of done FOR VALUES FROM ('01a1fb67-0000-0000-0000-000000000000') TO ('01a2008d-0000-0000-0000-000000000000');
create table if not exists sluice.done_20261122 partition of done FOR VALUES FROM ('01a2008d-0000-0000-0000-000000000000') TO ('01a205b3-0000-0000-0000-000000000000');
create table if not exists sluice.done_20261123 partition of done FOR VALUES FROM ('01a205b3-0000-0000-0000-000000000000') TO ('01a20ada-0000-0000-0000-000000000000');
create table if not exists sluice.done_20261124 partition of done FOR VALUES FROM ('01a20ada-0000-0000-0000-000000000000') TO ('01a21000-0000-0000-0000-000000000000');
create table if not exists sluice.job_20261117 partition of job FOR VALUES FROM ('01a1e6cd-0000-0000-0000-000000000000') TO ('01a1ebf4-0000-0000-0000-000000000000');
create table if not exists sluice.job_20261118 partition of job FOR VALUES FROM ('01a1ebf4-0000-0000-0000-000000000000') TO ('01a1f11a-0000-0000-0000-000000000000');
create table if not exists sluice.job_20261119 partition of job FOR VALUES FROM ('01a1f11a-0000-0000-0000-000000000000') TO ('01a1f640-0000-0000-0000-000000000000');
create table if not exists sluice.job_20261120 partition of job FOR VALUES FROM ('01a1f640-0000-0000-0000-000000000000') TO ('01a1fb67-0000-0000-0000-000000000000');
create table if not exists sluice.job_20261121 partition of job FOR VALUES FROM ('01a1fb67-0000-0000-0000-000000000000') TO ('01a2008d-0000-0000-0000-000000000000');
create table if not exists sluice.job_20261122 partition of job FOR VALUES FROM ('01a2008d-0000-0000-0000-000000000000') TO ('01a205b3-0000-0000-0000-000000000000');
create table if not exists sluice.job_20261123 partition of job FOR VALUES FROM ('01a205b3-0000-0000-0000-000000000000') TO ('01a20ada-0000-0000-0000-000000000000');
create table if not exists sluice.job_20261124 partition of job FOR VALUES FROM ('01a20ada-0000-0000-0000-000000000000') TO ('01a21000-0000-0000-0000-000000000000');
insert into sluice.alarm (alarm, queue, job_type, version, phase, since, changed_at, recent, clear_rounds, notified, notified_at, severity, value, threshold, summary) overriding system value values
('dead_letters', 'default', 'echo', '1', 'firing', '2026-03-04 10:00:00+00', '2026-03-04 10:00:00+00', '{}', '0', 'firing', '2026-03-04 10:00:00+00', 'warning', '1', '0', '1 dead letter');
insert into sluice.alarm_silence (alarm, until) overriding system value values
('dead_letters', '2026-11-17 02:31:50.73+00');
insert into sluice.api_key (id, name, role, key_hash, job_types, rate_limit_per_second, created_at, revoked_at, last_used_at) overriding system value values
('01a1e721-be40-7184-a627-7e592589973d', 'shop', 'producer', E'\\xabababababababababababababababababababababababababababababababab', '{pending}', '5', '2026-11-17 01:31:50.719167+00', NULL, NULL);
insert into sluice.audit (id, at, actor, action, target, before, after) overriding system value values
('1', '2026-11-17 01:31:50.422686+00', 'ann', 'discard', 'job 01a1e721-bd0c-7339-b76c-543cf7ec98d1', '{"status": "dead", "attempts": 1, "dead_reason": "fatal"}', '{"reason": "no use", "status": "discarded"}'),
('2', '2026-11-17 01:31:50.707458+00', 'ann', 'pause', 'type paused', '{"paused": false}', '{"paused": true}'),
('3', '2026-11-17 01:31:50.709944+00', 'ann', 'pause', 'queue paused', '{"paused": false}', '{"paused": true}'),
('4', '2026-11-17 01:31:50.719167+00', 'ann', 'add key', 'key 01a1e721-be40-7184-a627-7e592589973d', NULL, '{"id": "01a1e721-be40-7184-a627-7e592589973d", "name": "shop", "role": "producer", "job_types": ["pending"], "created_at": "2026-11-17T01:31:50.719167+00:00", "revoked_at": null, "last_used_at": null, "rate_limit_per_second": 5}'),
('5', '2026-11-17 01:31:50.735467+00', 'ann', 'silence', 'alarm dead_letters', '{"until": null}', '{"until": "2026-11-17T02:31:50.73+00:00"}');
insert into sluice.breaker (type, opened_at, probed_at, closed_at, step, step_lease, probe_id) overriding system value values
('broken', '2026-11-17 01:31:50.716775+00', '2026-11-17 01:31:50.716775+00', NULL, '1', NULL, NULL);
insert into sluice.closed (id, status, reason, closed_at, started_at, lane, attempt, abandonments) overriding system value values
('01a1e721-bcfe-73c4-8c78-024128befb21', 'cancelled', NULL, '2026-11-17 01:31:50.400554+00', NULL, '5', '0', '0'),
('01a1e721-bd0c-7339-b76c-543cf7ec98d1', 'discarded', 'fatal', '2026-11-17 01:31:50.422686+00', '2026-11-17 01:31:50.414221+00', '6', '1', '0'),
('01a1e721-bd20-7406-9846-47b5917b6bd1', 'dead', 'fatal', '2026-11-17 01:31:50.436619+00', '2026-11-17 01:31:50.434236+00', '7', '1', '0'),
('01a1e721-bd28-7a2a-ae7b-52b5dcffde81', 'dead', 'exhausted', '2026-11-17 01:31:50.448285+00', '2026-11-17 01:31:50.442335+00', '8', '1', '0'),
('01a1e721-bd39-7e37-8a24-c50cfdee1481', 'dead', 'expired', '2026-11-17 01:31:50.459216+00', NULL, '10', '0', '0'),
('01a1e721-bd41-74e6-888b-cb1625907571', 'dead', 'abandoned', '2026-11-17 01:31:50.552981+00', '2026-11-17 01:31:50.545077+00', '16', '5', '5');
insert into sluice.cursors (id, cursor_seqs, scheduled_cursor, seq, at, passable_at, open_writers, claims) overriding system value values
('3', '{1,3,18,18,18,18,18,18,18,18,18,18,18,18,18,18}', '2026-11-17 01:31:50.443357+00', '21', '2026-11-17 01:31:50.603956+00', '2026-11-17 01:31:50.48843+00', '{}', '12');
insert into sluice.delivery (seq, id, target, about, notice, created_at, state, tries, next_try_at, ended_at, status, error) overriding system value values
('1', '01a1e721-be49-7a36-b908-827d3c0c40d0', 'ops', 'dead_letters/default/echo', '{"type": "alarm.firing"}', '2026-11-17 01:31:50.723767+00', 'pending', '0', '2026-11-17 01:31:50.723767+00', NULL, NULL, NULL);
insert into sluice.done (hi_id, lo_id, started_at, finished_at, lane, ids, attempts) overriding system value values
('01a1e721-bcc8-701e-96b7-3b496f698694', '01a1e721-bcc8-701e-96b7-3b496f698691', '2026-11-17 01:31:50.353072+00', '2026-11-17 01:31:50.373018+00', '4', '{01a1e721-bcc8-701e-96b7-3b496f698691,01a1e721-bcc8-701e-96b7-3b496f698692,01a1e721-bcc8-701e-96b7-3b496f698693,01a1e721-bcc8-701e-96b7-3b496f698694}', NULL),
('01a1e721-bcc8-701e-96b7-3b496f698695', '01a1e721-bcc8-701e-96b7-3b496f698695', '2026-11-17 01:31:50.379678+00', '2026-11-17 01:31:50.38882+00', '4', '{01a1e721-bcc8-701e-96b7-3b496f698695}', NULL);
insert into sluice.duration (lane, measure, bucket, jobs, seconds) overriding system value values
('4', 'waiting', '0', '5', '0.07775599882006645'),
('4', 'processing', '0', '5', '0.08892599865794182');
insert into sluice.enqueue_error (at, errors) overriding system value values
('2026-11-17 01:31:50.744968+00', '2');
insert into sluice.expiry (expires_at, id) overriding system value values
('2026-11-17 03:31:50.32+00', '01a1e721-bcb8-7733-a4bf-cca66cce8d91');
insert into sluice.failed_attempt (id, attempt, started_at, failed_at, message, detail) overriding system value values
('01a1e721-bd0c-7339-b76c-543cf7ec98d1', '1', '2026-11-17 01:31:50.414221+00', '2026-11-17 01:31:50.416818+00', 'no use', NULL),
('01a1e721-bd20-7406-9846-47b5917b6bd1', '1', '2026-11-17 01:31:50.434236+00', '2026-11-17 01:31:50.436619+00', 'no use', NULL),
('01a1e721-bd28-7a2a-ae7b-52b5dcffde81', '1', '2026-11-17 01:31:50.442335+00', '2026-11-17 01:31:50.448285+00', 'no', NULL),
('01a1e721-bd32-7cb5-a9e6-daf37af354b1', '1', '2026-11-17 01:31:50.45235+00', '2026-11-17 01:31:50.454833+00', 'no', NULL),
('01a1e721-bd3f-7bb6-aa7e-49af972ee091', '1', '2026-11-17 01:31:50.466774+00', '2026-11-17 01:31:50.469381+00', 'the lease ran out', NULL),
('01a1e721-bd3f-7bb6-aa7e-49af972ee092', '1', '2026-11-17 01:31:50.466774+00', '2026-11-17 01:31:50.469381+00', 'the lease ran out', NULL),
('01a1e721-bd41-74e6-888b-cb1625907571', '1', '2026-11-17 01:31:50.479959+00', '2026-11-17 01:31:50.482131+00', 'the lease ran out', NULL),
('01a1e721-bd41-74e6-888b-cb1625907571', '2', '2026-11-17 01:31:50.488064+00', '2026-11-17 01:31:50.497802+00', 'the lease ran out', NULL),
('01a1e721-bd41-74e6-888b-cb1625907571', '3', '2026-11-17 01:31:50.507772+00', '2026-11-17 01:31:50.514427+00', 'the lease ran out', NULL),
('01a1e721-bd41-74e6-888b-cb1625907571', '4', '2026-11-17 01:31:50.533206+00', '2026-11-17 01:31:50.537024+00', 'the lease ran out', NULL),
('01a1e721-bd41-74e6-888b-cb1625907571', '5', '2026-11-17 01:31:50.545077+00', '2026-11-17 01:31:50.552981+00', 'the lease ran out', NULL);
insert into sluice.idempotency (key_hash, id, fingerprint, expires_at) overriding system value values
('7fef9479-c8bc-5a3c-8689-1cb82969cbf2', '01a1e721-bc99-798f-b676-6d7a08a33a32', '2092017454892022322', '2026-11-24 01:31:50.28587+00');
insert into sluice.job (id, lane, max_attempts, scheduled_at, expires_at, idempotency_key, partition_key, traceparent, tags, payload) overriding system value values
('01a1e721-bcb8-7733-a4bf-cca66cce8d91', '3', '5', '2026-11-17 02:31:50.32+00', '2026-11-17 03:31:50.32+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bd39-7e37-8a24-c50cfdee1481', '10', '5', NULL, '2026-11-17 01:31:49.456+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bc99-798f-b676-6d7a08a33a31', '1', '7', NULL, '2100-01-01 00:00:00+00', NULL, 'p', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', '{red,blue}', E'{"nested": {"text": "it''s \\\\ \\"quoted\\""}}'),
('01a1e721-bc99-798f-b676-6d7a08a33a32', '1', '7', NULL, '2100-01-01 00:00:00+00', 'upgrade', 'p', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', '{red,blue}', E'{"nested": {"text": "it''s \\\\ \\"quoted\\""}}'),
('01a1e721-bc99-798f-b676-6d7a08a33a33', '2', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bcc8-701e-96b7-3b496f698691', '4', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bcc8-701e-96b7-3b496f698692', '4', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bcc8-701e-96b7-3b496f698693', '4', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bcc8-701e-96b7-3b496f698694', '4', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bcc8-701e-96b7-3b496f698695', '4', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bcfe-73c4-8c78-024128befb21', '5', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bd0c-7339-b76c-543cf7ec98d1', '6', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bd20-7406-9846-47b5917b6bd1', '7', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bd28-7a2a-ae7b-52b5dcffde81', '8', '1', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bd32-7cb5-a9e6-daf37af354b1', '9', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bd3f-7bb6-aa7e-49af972ee091', '11', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bd3f-7bb6-aa7e-49af972ee092', '11', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-bd41-74e6-888b-cb1625907571', '12', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-be0b-737f-ba21-d3874fb6f1f1', '17', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-be0b-737f-ba21-d3874fb6f1f2', '17', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-be0b-737f-ba21-d3874fb6f1f3', '17', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-be0b-737f-ba21-d3874fb6f1f4', '17', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-be0b-737f-ba21-d3874fb6f1f5', '17', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-be0b-737f-ba21-d3874fb6f1f6', '17', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-be20-7f70-b9ee-b77318d7dee1', '18', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-be20-7f70-b9ee-b77318d7dee2', '18', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}'),
('01a1e721-be5f-7b38-9c60-6cb505f36691', '19', '5', NULL, '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '{}');
insert into sluice.job_tag (tag, id) overriding system value values
('red', '01a1e721-bc99-798f-b676-6d7a08a33a31'),
('blue', '01a1e721-bc99-798f-b676-6d7a08a33a32'),
('red', '01a1e721-bc99-798f-b676-6d7a08a33a32'),
('blue', '01a1e721-bc99-798f-b676-6d7a08a33a31');
insert into sluice.lane (lane, queue, type, priority, group_size) overriding system value values
('1', 'upgrade', 'pending', '3', '0'),
('2', 'upgrade', 'pending', '5', '0'),
('3', 'upgrade', 'scheduled', '5', '0'),
('4', 'upgrade', 'completed', '5', '0'),
('5', 'upgrade', 'cancelled', '5', '0'),
('6', 'upgrade', 'discarded', '5', '0'),
('7', 'upgrade', 'fatal', '5', '0'),
('8', 'upgrade', 'exhausted', '5', '0'),
('9', 'upgrade', 'retried', '5', '0'),
('10', 'upgrade', 'expired', '5', '0'),
('11', 'upgrade', 'isolated', '5', '0'),
('12', 'upgrade', 'abandoned', '5', '0'),
('13', 'upgrade', 'isolated', '5', '32'),
('14', 'upgrade', 'abandoned', '5', '32'),
('15', 'upgrade', 'abandoned', '5', '6'),
('16', 'upgrade', 'abandoned', '5', '1'),
('17', 'upgrade', 'processing', '5', '0'),
('18', 'upgrade', 'limited', '5', '0'),
('19', 'upgrade', 'after_the_fold', '5', '0');
insert into sluice.lease (lock_order, key, deadline, started_at, lane, worker, ids, attempts, abandonments) overriding system value values
('14', '0006606e-dbc9-c99c-bb26-b017a92baa93', '2026-11-17 01:36:50.671861+00', '2026-11-17 01:31:50.671464+00', '17', 'w', '{01a1e721-be0b-737f-ba21-d3874fb6f1f3,01a1e721-be0b-737f-ba21-d3874fb6f1f4,01a1e721-be0b-737f-ba21-d3874fb6f1f5,01a1e721-be0b-737f-ba21-d3874fb6f1f6}', NULL, NULL),
('15', '0006606e-dbc9-c99c-bb26-b017a92baa93', '2026-11-17 01:41:50.675131+00', '2026-11-17 01:31:50.671464+00', '17', 'w', '{01a1e721-be0b-737f-ba21-d3874fb6f1f1,01a1e721-be0b-737f-ba21-d3874fb6f1f2}', NULL, NULL),
('16', '0006606e-dbc9-c99d-bee8-4c4030ae9ecf', '2026-11-17 01:36:50.691818+00', '2026-11-17 01:31:50.691327+00', '18', NULL, '{01a1e721-be20-7f70-b9ee-b77318d7dee1}', NULL, NULL);
insert into sluice.ledger (at, lane, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired, processing_seconds, waiting_seconds) overriding system value values
('2026-11-17 01:31:50.411912+00', '6', '1', '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.414221+00', '6', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{0.002561}'),
('2026-11-17 01:31:50.416818+00', '6', NULL, NULL, NULL, '-1', NULL, '1', '1', NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.422686+00', '6', NULL, NULL, NULL, NULL, NULL, NULL, '-1', '1', NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.431995+00', '7', '1', '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.434236+00', '7', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{0.002535}'),
('2026-11-17 01:31:50.436619+00', '7', NULL, NULL, NULL, '-1', NULL, '1', '1', NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.440355+00', '8', '1', '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.442335+00', '8', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{0.005894}'),
('2026-11-17 01:31:50.448285+00', '8', NULL, NULL, NULL, '-1', NULL, '1', '1', NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.450563+00', '9', '1', '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.45235+00', '9', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{0.002645}'),
('2026-11-17 01:31:50.454833+00', '9', NULL, '1', '1', '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.45698+00', '10', '1', '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.459216+00', '10', NULL, '-1', '0', NULL, NULL, NULL, '1', NULL, NULL, '1', NULL, NULL),
('2026-11-17 01:31:50.463547+00', '11', '2', '2', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.465031+00', '12', '1', '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.466774+00', '11', NULL, '-2', NULL, '2', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{0.004026,0.004026}'),
('2026-11-17 01:31:50.469381+00', '11', NULL, NULL, NULL, '-2', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.469381+00', '13', NULL, NULL, NULL, '2', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.469381+00', '13', NULL, '2', '2', '-2', NULL, '2', NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.479959+00', '12', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{0.015238}'),
('2026-11-17 01:31:50.482131+00', '12', NULL, NULL, NULL, '-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.482131+00', '14', NULL, NULL, NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.482131+00', '14', NULL, '1', '1', '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.488064+00', '14', NULL, NULL, '-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.488064+00', '14', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.497802+00', '14', NULL, NULL, NULL, '-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.497802+00', '15', NULL, NULL, NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.497802+00', '15', NULL, '1', '1', '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.507772+00', '15', NULL, NULL, '-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.507772+00', '15', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.514427+00', '15', NULL, NULL, NULL, '-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.514427+00', '16', NULL, NULL, NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.514427+00', '16', NULL, '1', '1', '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.533206+00', '16', NULL, NULL, '-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.533206+00', '16', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.537024+00', '16', NULL, NULL, NULL, '-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.537024+00', '16', NULL, NULL, NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.537024+00', '16', NULL, '1', '1', '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.545077+00', '16', NULL, NULL, '-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.545077+00', '16', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.552981+00', '16', NULL, NULL, NULL, '-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.552981+00', '16', NULL, NULL, NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.552981+00', '16', NULL, NULL, NULL, '-1', NULL, '1', '1', NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.666902+00', '17', '6', '6', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.671464+00', '17', NULL, '-6', NULL, '6', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{0.004861,0.004861,0.004861,0.004861,0.004861,0.004861}'),
('2026-11-17 01:31:50.688663+00', '18', '2', '2', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2026-11-17 01:31:50.691327+00', '18', NULL, '-1', NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{0.003818}'),
('2026-11-17 01:31:50.751504+00', '19', '1', '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
insert into sluice.limit_state (type, id, lease_keys, started_at, started) overriding system value values
('limited', '1', '{0006606e-dbc9-c99d-bee8-4c4030ae9ecf}', '{"2026-11-17 01:31:50.695206+00"}', '{1}');
insert into sluice.output (id, output) overriding system value values
('01a1e721-bcc8-701e-96b7-3b496f698695', '{"rows": [1, 2]}');
insert into sluice.pause (kind, name, since) overriding system value values
('type', 'paused', '2026-11-17 01:31:50.707458+00'),
('queue', 'paused', '2026-11-17 01:31:50.709944+00');
insert into sluice.ready (seq, id, lane, attempt, abandonments) overriding system value values
('1', '01a1e721-bc99-798f-b676-6d7a08a33a31', '1', '0', '0'),
('2', '01a1e721-bc99-798f-b676-6d7a08a33a32', '1', '0', '0'),
('3', '01a1e721-bc99-798f-b676-6d7a08a33a33', '2', '0', '0'),
('29', '01a1e721-be20-7f70-b9ee-b77318d7dee2', '18', '0', '0'),
('30', '01a1e721-be5f-7b38-9c60-6cb505f36691', '19', '0', '0');
insert into sluice.round (id, kind, queue, started_at, ended_at, claimed, completed, failed, released, lost, claim_ms, reason, message, steps) overriding system value values
('1', 'drain', 'upgrade', '2026-11-17 01:31:50.735998+00', '2026-11-17 01:31:50.738998+00', '1', '0', '0', '0', '0', NULL, 'empty', NULL, NULL);
insert into sluice.scheduled (run_at, id, lane, attempt, abandonments) overriding system value values
('2026-11-17 02:31:50.32+00', '01a1e721-bcb8-7733-a4bf-cca66cce8d91', '3', '0', '0'),
('2026-11-17 01:32:50.455955+00', '01a1e721-bd32-7cb5-a9e6-daf37af354b1', '9', '1', '0'),
('2026-11-17 01:32:29.082823+00', '01a1e721-bd3f-7bb6-aa7e-49af972ee091', '13', '1', '1'),
('2026-11-17 01:32:28.020763+00', '01a1e721-bd3f-7bb6-aa7e-49af972ee092', '13', '1', '1');
insert into sluice.tally (minute, lane, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired) overriding system value values
('2026-11-17 01:31:00+00', '1', '2', '2', '0', '0', '0', '0', '0', '0', '0', '0'),
('-infinity', '1', '2', '2', '0', '0', '0', '0', '0', '0', '0', '0'),
('2026-11-17 01:31:00+00', '2', '1', '1', '0', '0', '0', '0', '0', '0', '0', '0'),
('-infinity', '2', '1', '1', '0', '0', '0', '0', '0', '0', '0', '0'),
('2026-11-17 01:31:00+00', '3', '1', '1', '1', '0', '0', '0', '0', '0', '0', '0'),
('-infinity', '3', '1', '1', '1', '0', '0', '0', '0', '0', '0', '0'),
('2026-11-17 01:31:00+00', '4', '5', '0', '0', '0', '5', '0', '0', '0', '0', '0'),
('-infinity', '4', '5', '0', '0', '0', '5', '0', '0', '0', '0', '0'),
('2026-11-17 01:31:00+00', '5', '1', '0', '0', '0', '0', '0', '0', '0', '1', '0'),
('-infinity', '5', '1', '0', '0', '0', '0', '0', '0', '0', '1', '0');
select setval('sluice.audit_id_seq', 5);
select setval('sluice.claim_count', 14);
select setval('sluice.cursors_id_seq', 3);
select setval('sluice.delivery_seq_seq', 1);
select setval('sluice.lane_lane_seq', 19);
select setval('sluice.lease_generation', 1794879110367645);
select setval('sluice.lease_lock_order_seq', 16);
select setval('sluice.limit_state_id_seq', 1);
select setval('sluice.ready_seq', 30);
select setval('sluice.round_id_seq', 1);
