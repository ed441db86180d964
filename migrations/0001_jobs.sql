-- The first schema: one table, one row a job. Names are unqualified: the runner sets the search_path to the
-- schema that the deployment chose.

create table job (
  id               uuid primary key default uuidv7(),
  type             text not null,
  queue            text not null default 'default',
  status           text not null default 'pending',
  priority         smallint not null default 5,
  payload          jsonb not null default '{}',
  attempts         smallint not null default 0,
  max_attempts     smallint not null default 5,
  created_at       timestamptz not null default now(),
  scheduled_at     timestamptz not null default now(),
  started_at       timestamptz,
  completed_at     timestamptz,
  expires_at       timestamptz not null default now() + interval '30 days',
  errors           jsonb not null default '[]',
  dead_reason      text,
  partition_key    text,
  tags             text[] not null default '{}',
  idempotency_key  text,
  output           jsonb,
  lease_generation bigint not null default 0,
  lease_expires_at timestamptz,

  constraint status_is_known check (status in ('pending', 'processing', 'completed', 'dead', 'discarded', 'cancelled')),
  constraint dead_reason_is_known check (dead_reason in ('exhausted', 'fatal', 'expired', 'abandoned')),
  constraint priority_in_range check (priority between 0 and 9),
  constraint attempts_in_range check (max_attempts between 1 and 20 and attempts between 0 and max_attempts),
  constraint payload_is_object check (jsonb_typeof(payload) = 'object'),
  constraint lease_while_processing check ((status = 'processing') = (lease_expires_at is not null)),
  constraint reason_when_dead check (status <> 'dead' or dead_reason is not null),
  constraint time_when_completed check ((status = 'completed') = (completed_at is not null))
);

-- What a claim reads, in the order in which it reads it.
create index job_claimable on job (queue, priority desc, scheduled_at, id) where status = 'pending';
-- What the reaper reads.
create index job_leased on job (lease_expires_at) where status = 'processing';
