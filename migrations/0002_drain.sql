-- What drains keep in the database: the state of limits and breakers, and a record of each round.

-- For a limited type: which leases count against its concurrency, and when how many were started. The newest row
-- counts; a claimer of the type writes the next one under the type's advisory lock and removes the one it read. So
-- nobody updates a row that others read, and under a pinned snapshot only the right end of the index is touched.
create table limit_state (
  type        text not null,
  id          bigint generated always as identity,
  lease_keys  uuid[] not null,
  started_at  timestamptz[] not null,
  started     int[] not null,
  primary key (type, id)
);

-- A type's circuit breaker: open while it was not closed since it was opened. Once closed it lets jobs through by steps of
-- growing size, until the type has shown that it works.
create table breaker (
  type       text primary key,
  opened_at  timestamptz not null,
  probed_at  timestamptz not null, -- when a job was last let through
  closed_at  timestamptz,
  step       smallint default 1, -- how many jobs may be claimed next; null: as many as there are
  step_lease uuid, -- the claim that took the last step
  probe_id   uuid, -- the job that was let through: it is the next probe too, until it ends
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
  lost       int not null default 0, -- settled too late: the lease had run out
  claim_ms   float8, -- how long a claim of it took, on the average; null: it made none
  reason     text not null, -- why it ended: empty, time, subrequests, error; done
  message    text, -- of an error
  steps      jsonb, -- of a reap round: what each step did, and how long it took
  check (ended_at >= started_at)
);
create index round_by_kind on round (kind, id);

-- Enqueues over HTTP that were answered with a 5xx or refused for depth: each isolate writes its count now and then.
create table enqueue_error (
  at     timestamptz not null default now(),
  errors int not null check (errors > 0)
);
create index enqueue_error_in_order on enqueue_error (at);
