-- The tables of the queue. A job's state is the table that it is in. A claim deletes rows from a narrow table whose dead
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
