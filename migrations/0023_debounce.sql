-- Keys of debounce and throttle (debounce.sql). A key is a row of debounce_key and a row of debounce_state: one transaction
-- writes both, and one removes both.

-- The lock of a key. The row is written once and only locked after that. So a key that is used all the time has no dead rows
-- here.
create table debounce_key (
  hash       uuid primary key,     -- half of a SHA-256 of the kind, the queue, the type and the key
  expires_at timestamptz not null  -- prune looks at it then, and not before
);
create index debounce_key_by_expiry on debounce_key (expires_at);

-- What a key stands at. The newest row counts. A change inserts the next row and deletes the one before, and looks go from the
-- end of the index, so a pinned database slows nothing down.
create table debounce_state (
  hash    uuid not null,
  version bigint generated always as identity,
  id      uuid not null,        -- the last job that was made under the key
  since   timestamptz not null, -- of a debounce: when the first of the jobs that replaced each other was made
  is_list boolean not null,     -- its payload is a list of payloads that were merged
  until   timestamptz,          -- of a throttle: no other job before
  primary key (hash, version)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- New jobs with keys, and what becomes of them. All arrays are by the job's place in the call.
create type bound_jobs as (
  jobs         new_job[], -- with their times, and with lists for payloads that are merged
  outcomes     text[],    -- created, kept, replaced, merged, throttled; null: the job has no key
  bound_ids    uuid[],    -- the job that stands for it; null: a job is made
  replaced_ids uuid[]     -- the job that it replaces
);
