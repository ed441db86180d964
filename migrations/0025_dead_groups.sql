-- Dead letters by lane, reason and fingerprint of the error, and how many died in each hour of the last day. Every statement that
-- changes `closed` appends to `death` (0026), so nobody waits for a counter. fold_deaths adds the entries up. Totals plus
-- entries are exact in every snapshot.
create table death (
  lane        int not null,
  reason      text not null,
  fingerprint bigint not null,
  hour        timestamptz not null, -- of the death, to the hour
  dead        int not null, -- change of the dead letters
  died        int not null, -- deaths: a replay takes none of them back
  first_at    timestamptz, -- of the deaths; null: there was none
  last_at     timestamptz
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create table dead_group (
  lane        int not null,
  reason      text not null,
  fingerprint bigint not null, -- 0: no error
  dead        bigint not null,
  first_at    timestamptz, -- the first and the last death since the group was last empty
  last_at     timestamptz,
  primary key (lane, reason, fingerprint)
);
create table dead_hour (
  lane        int not null,
  reason      text not null,
  fingerprint bigint not null,
  hour        timestamptz not null,
  died        bigint not null,
  primary key (lane, reason, fingerprint, hour)
);
create index dead_hour_in_order on dead_hour (hour);

-- A run replays or discards all dead letters that match a filter, some at a time (dead-runs.sql).
create table dead_run (
  id          bigint generated always as identity primary key,
  action      text not null check (action in ('replay', 'discard')),
  type        text, -- null in one of these four: any
  reason      text,
  fingerprint bigint,
  queue       text,
  until       timestamptz not null, -- jobs that died later are left alone
  max_jobs    bigint, -- null: all
  per_minute  int, -- null: as fast as it goes
  patch       jsonb, -- JSON merge patch of each payload
  note        text, -- why
  actor       text not null,
  state       text not null default 'running' check (state in ('running', 'done', 'stopped')),
  matched     bigint not null, -- when it was started
  done        bigint not null default 0,
  skipped     bigint not null default 0,
  skips       jsonb not null default '[]', -- the first of them: { job_id, reason }
  passed_at   timestamptz not null default '-infinity', -- how far it has come, in the order of the deaths
  passed_id   uuid not null default '00000000-0000-0000-0000-000000000000',
  started_at  timestamptz not null default now(),
  next_at     timestamptz not null default now(), -- when it may go on
  ended_at    timestamptz,
  check (patch is null or type is not null and action = 'replay'),
  check ((state = 'running') = (ended_at is null))
) with (fillfactor = 50); -- every step updates the row in place
create index dead_run_running on dead_run (id) where state = 'running';
