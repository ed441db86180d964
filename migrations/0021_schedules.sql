-- Schedules, docs/schedules.md explains them. A slot that was planned and not fired yet is a row of `scheduled`, under the lane of
-- the job that it becomes, with place -1 (plan-slots.sql).
create table schedule (
  name          text primary key check (name ~ '^[a-z][a-z0-9_.-]{0,62}$'),
  number        bigint generated always as identity unique,
  source        text not null check (source in ('api', 'code')),
  cron          text not null,
  time_zone     text not null,
  lane          int not null,
  payload       payload_object not null,
  max_attempts  allowed_attempts not null,
  missed        text not null check (missed in ('skip', 'last', 'all')),
  overlap       text not null check (overlap in ('allow', 'skip')),
  paused_since  timestamptz,
  planned_until timestamptz not null, -- slots up to here are planned, or never will be
  refill_at     timestamptz not null, -- when more slots are planned; infinity: it is paused
  check (paused_since is null or refill_at = 'infinity')
);
create index schedule_by_refill on schedule (refill_at);

-- The slots that made jobs. Only the newest of each schedule is needed; whoever plans removes the others. Nothing is updated, so a
-- schedule with seconds stays cheap while the database is pinned.
create table schedule_run (
  schedule bigint not null,
  slot     timestamptz not null,
  job_id   uuid not null,
  primary key (schedule, slot)
);

-- The sets of schedules in code that deployments have lately (code-schedules.sql).
create table code_schedules (
  checksum      text primary key,
  first_seen_at timestamptz not null default clock_timestamp(),
  seen_at       timestamptz not null default clock_timestamp(),
  applied       boolean not null default false
);

-- A slot that has become due.
create type due_slot as (
  number bigint,
  slot   timestamptz,
  late   boolean
);
