-- The tables of the queue. docs/engine.md tells why they are cut this way; in one sentence: what is claimed is
-- deleted from a narrow table whose dead rows all lie to the left of a cursor, and what is long-lived is
-- written once. A job's state is the table that it is in.
--
-- Names are unqualified: the runner sets the search_path to the schema that the deployment chose.

-- A lane is the unit that pausing, limits and breakers choose: they never filter rows. Two transactions that
-- meet a new (queue, type, priority) at once each make a lane of their own rather than wait for each other;
-- both are good, and later jobs use the older one. Jobs that were abandoned go on in lanes from which so many are claimed
-- at once, and nothing else with them: first a group, then one alone (reap_leases).
create table lane (
  lane     int generated always as identity primary key,
  queue    text not null check (queue ~ '^[a-z][a-z0-9_.-]{0,62}$'),
  type     text not null check (type ~ '^[a-z][a-z0-9_.-]{0,62}$'),
  priority smallint not null check (priority between 0 and 9),
  group_size smallint not null default 0 -- of isolated jobs; 0: any number
);
create index lane_by_name on lane (queue, priority, type, group_size, lane);

-- What columns of the tables that jobs move through can hold. A check constraint of a table is parsed and planned anew by
-- every statement that meets it, that of a domain once in a session: these cost nothing that can be told from noise
-- (docs/decisions/constraints.md). For the rest of what is impossible inspect.sql looks, and the tests have constraints
-- (test/support/checks.sql).
create domain allowed_attempts as smallint check (value between 1 and 20);
create domain payload_object as jsonb check (jsonb_typeof(value) = 'object');
create domain some_ids as uuid[] check (cardinality(value) > 0);

-- What a job is: written once by the enqueue. One partition a day by id, so that old days are dropped, not deleted.
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

-- pending, due now. `seq` is given anew whenever a job becomes ready: dead rows lie to the left of live ones.
create table ready (
  seq     bigint not null,
  id      uuid not null,
  lane    int not null,
  attempt smallint not null default 0,
  abandonments smallint not null default 0
) with (
  -- Every claim leaves dead rows; a small fixed threshold lets vacuum follow whatever the backlog's size is.
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
  autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0
);
create sequence ready_seq;
create unique index ready_in_order on ready (lane, seq);
create unique index ready_by_id on ready (id);

-- pending, due later: a producer's delay and a retry's backoff alike.
create table scheduled (
  run_at  timestamptz not null,
  id      uuid not null,
  lane    int not null,
  attempt smallint not null default 0,
  abandonments smallint not null default 0
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index scheduled_in_order on scheduled (run_at);
create unique index scheduled_by_id on scheduled (id);

-- processing: one row for each claimed batch and lane. Whoever settles or extends shows the lease's key (lease-key.sql):
-- its first half rises with every claim, replay included, and its second half cannot be guessed. Extending some of a
-- lease's jobs splits them off under the same key, so it is not unique.
create table lease (
  lock_order bigint generated always as identity, -- the order in which those who wait for several lock them
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
create sequence claim_count; -- tells when cursors are to be moved
create index lease_by_key on lease (key);
create index lease_by_deadline on lease (deadline);

-- completed: one packed row for each settled batch and lane, split by the ids' 65-second buckets so that one job is
-- found by its id. Partitioned by day as `job` is.
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

-- What completed jobs returned; most return nothing.
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

-- Days whose partitions were dropped, until what hung on their jobs is pruned too.
create table dropped_day (
  day     date primary key,
  next_id uuid not null -- pruned up to here
);

-- Expiry times that a producer chose. All others follow from the id. A row outlives its job and is swept in time.
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

-- The books: each statement that moves jobs appends one row for each lane, so that nobody waits for a counter and a
-- rollback takes its entries along. They are folded into `tally`: a row for each lane with all there ever was, and one
-- for each minute of the last day.
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
  expired   int, -- buried because their time had passed; among the dead too
  processing_seconds real, -- of the completed ones, from claim to settlement
  waiting_seconds    real[] -- of each job that was claimed for the first time, from when it was due
) with (
  toast_tuple_target = 8160, -- the times of a thousand jobs stay in the row
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
create table tally (
  minute    timestamptz not null, -- '-infinity': all there ever was
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

-- How long jobs waited for their first claim and were processed, as histograms.
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

-- Where the cursors stand, and what was seen when they were last moved. The newest row counts: an advance writes the
-- next one and removes the one that it read. So nobody updates a row that every claim reads, and what a pinned
-- snapshot keeps of it lies to the left.
create table cursors (
  id            bigint generated always as identity primary key,
  cursor_seqs          bigint[] not null, -- of each lane, by its number; past the end: 0
  scheduled_cursor timestamptz not null,
  seq           bigint not null, -- the last one given out
  at            timestamptz not null, -- the clock
  passable_at   timestamptz not null, -- how far the next advance may move scheduled_cursor
  open_writers       text[] not null, -- transactions that may hold back rows up to there
  claims        bigint not null -- how many there were
) with (toast_tuple_target = 8160); -- hundreds of lanes stay in the row
-- A transaction that cursors have passed while it was open, and where they stood before; or one that found the cursor of
-- `scheduled` ahead of its own rows, because the clock had stepped back (keep_reachable).
create table cursor_gap (
  writer        text primary key,
  cursor_seqs          bigint[], -- null: none was passed
  scheduled_cursor timestamptz not null
);

-- How far the check for unreachable jobs has come in each table (check_reach).
create table sweep (
  table_name text primary key,
  page       bigint not null
);

-- What a producer asks for; null is the default of each field.
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


-- Alarms: what is wrong and since when, and the notices of it on their way to their targets.

create table alarm (
  alarm        text not null,
  queue        text, -- null: all
  job_type     text, -- null: all
  version      bigint not null, -- a watcher changes only what it has seen
  phase        text not null check (phase in ('ok', 'pending', 'firing')),
  since        timestamptz not null, -- when the trouble was first seen
  changed_at   timestamptz not null,
  recent       boolean[] not null, -- which of the last rounds were bad, until it fires
  clear_rounds int not null, -- clearly good ones in a row, while it fires
  notified     text not null check (notified in ('ok', 'firing')), -- what the targets were last notified of
  notified_at  timestamptz,
  severity     text not null check (severity in ('critical', 'warning', 'info')),
  value        float8,
  threshold    float8 not null,
  summary      text not null
);
create unique index alarm_by_key on alarm (alarm, queue, job_type) nulls not distinct;

-- One for each notice and target. It is written by the statement that changes the alarm, so a watcher that dies
-- between raising and delivering loses nothing.
create table delivery (
  seq         bigint generated always as identity primary key,
  id          uuid not null unique, -- the webhook-id, the same for all tries
  target      text not null,
  about       text not null, -- the alarm, its queue and type: of these a target hears in order
  notice      jsonb not null,
  created_at  timestamptz not null default now(),
  state       text not null default 'pending' check (state in ('pending', 'delivered', 'given_up')),
  tries       int not null default 0, -- fences: only the latest try may say how it ended
  next_try_at timestamptz not null default now(), -- while it is tried: when its deliverer is taken for dead
  ended_at    timestamptz,
  status      int, -- of the last answer
  error       text,
  check ((state = 'pending') = (ended_at is null))
);
create index delivery_due on delivery (next_try_at) where state = 'pending';
create index delivery_in_order on delivery (target, about, seq) where state = 'pending';
create index delivery_ended on delivery (ended_at) where state <> 'pending';

-- How a target fares. Its URL may be a secret, so only its hash is here: another URL is another target.
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

-- What the inspection (inspect.sql) found and nobody has repaired yet; at most 100.
create table impossible_state (
  kind    text not null check (kind in ('job', 'lease', 'done')), -- the table
  id      uuid not null, -- of the job; the key of the lease; the highest id of the row of `done`
  what    text not null, -- is wrong with it
  seen_at timestamptz not null default now(), -- first
  primary key (kind, id)
);
