-- Jobs that wait for the end of others, for a signal or for a time. docs/decisions/flows.md explains it.

-- A lane of kind `ends` holds no jobs: its rows are events for jobs that wait (resolve-ends.sql). Each queue in which jobs wait
-- has one.
alter table lane drop constraint lane_kind_check;
alter table lane add constraint lane_kind_check check (kind in ('plain', 'ordered', 'fair', 'returns', 'ends')) not valid;

-- The death of a blocker kills a job: `culprit` is the blocker.
alter table closed add culprit uuid;
alter table closed drop constraint closed_reason_check;
alter table closed add constraint closed_reason_check
  check (reason in ('exhausted', 'fatal', 'expired', 'abandoned', 'blocker')) not valid;
create index if not exists closed_by_culprit on closed (culprit) where culprit is not null;

-- blocked: a job that waits. A job that waits once more has another number, so events of an earlier wait find nothing. `togo` is
-- updated in place, at most once for each event, and no index has it.
create sequence wait_number;
create table blocked (
  wait         bigint primary key,
  id           uuid not null,
  lane         int not null,      -- where it goes then; negative: to wait for its turn
  attempt      smallint not null default 0,
  abandonments smallint not null default 0,
  key          bigint,
  place        bigint,            -- not null: it holds a turn of its key
  run_at       timestamptz,       -- it does not run before; null: at once
  togo         int not null,      -- edges that were not counted yet
  until        timestamptz,       -- of a suspended job: when its wait times out; null: never
  signal_name  text,
  signal_key   text
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create unique index blocked_by_id on blocked (id);
create index blocked_by_key on blocked (key) where place is not null;

-- What a wait waits for: the end of a chain, by the id of its first job, or a signal, by its id.
create table edge (
  blocker uuid not null,
  wait    bigint not null,
  lane    int not null,    -- of the waiting job's events
  dies    boolean not null -- the waiting job dies if the blocker does not complete
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create unique index edge_by_wait on edge (wait, blocker);
create index edge_by_blocker on edge (blocker);

-- What a job's `after` said. Written once.
create table dependency (
  id       uuid primary key,
  slots    text[] not null, -- names
  sizes    int[] not null,  -- how many blockers each slot has
  blockers uuid[] not null, -- of all slots, one after the other
  dies     boolean not null
);

-- The jobs of a chain after its first.
create table chain_job (
  chain uuid not null, -- the id of the first
  index int not null,
  id    uuid not null,
  primary key (chain, index)
);
create index chain_job_by_id on chain_job (id);

create table signal (
  id      uuid primary key, -- follows from name and key
  name    text not null,
  key     text not null,
  payload jsonb,
  sent_at timestamptz not null default now()
);
create index signal_in_order on signal (sent_at);

-- Its jobs have the ids from `id` to `last_id`. Their continuations belong to it too.
create table flow (
  id           uuid primary key,
  last_id      uuid not null,
  cancelled_at timestamptz,
  total        int not null default 0,
  blocked      int not null default 0,
  pending      int not null default 0,
  processing   int not null default 0,
  completed    int not null default 0,
  dead         int not null default 0,
  discarded    int not null default 0,
  cancelled    int not null default 0
);
-- Changes of these counts that were not added yet, so that nobody waits for a flow's row.
create table flow_ledger (
  flow       uuid not null,
  total      int,
  blocked    int,
  pending    int,
  processing int,
  completed  int,
  dead       int,
  discarded  int,
  cancelled  int
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index flow_ledger_by_flow on flow_ledger (flow);

-- A linked job that a claim has taken.
create type linked_job as (
  id    uuid,
  flow  uuid,
  waits boolean
);

-- A part of an event, as ready.returned has it.
create type end_event as (
  lane   int,
  wait   bigint,
  number int,
  id     uuid
);
