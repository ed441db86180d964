-- Who may call the API, and what they did to the place.

create table api_key (
  id                    uuid primary key,
  name                  text not null check (length(name) between 1 and 100),
  role                  text not null check (role in ('producer', 'worker', 'viewer', 'admin')),
  key_hash              bytea not null unique check (octet_length(key_hash) = 32), -- SHA-256 of the whole key
  job_types             text[] check (cardinality(job_types) > 0), -- null: all
  rate_limit_per_second int not null default 1000 check (rate_limit_per_second > 0),
  created_at            timestamptz not null default now(),
  revoked_at            timestamptz,
  last_used_at          timestamptz, -- to the minute
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
-- Always: a session that plays a replica (session_replication_role) skips ordinary triggers.
alter table audit enable always trigger audit_is_append_only;

-- Roles that the Worker connects as: each migration renews what they may do (functions/worker-role.sql).
create table worker_role (
  name text primary key
);
