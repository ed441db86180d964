-- What the dispatcher knows of keys, and how far it has read. dispatch.sql explains it.

-- How many turns of a key are out. The dispatcher alone writes it. The newest row of a key counts, so a pinned database
-- only leaves dead rows to the left of the one that is read.
create table key_state (
  key     bigint not null,
  version bigint generated always as identity,
  turns   int not null,
  low     bigint not null, -- no row of the key waits up to here, unless `late` says so
  late    bigint,          -- a row that was committed late waits from here on, behind the turn that is out
  next_at timestamptz,     -- with a rate: nothing of the key starts before this
  listed  boolean not null default false -- a share: its next job stands in a claimable lane
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create unique index key_state_newest on key_state (key, version);

-- How far the dispatcher of a queue has read. The newest row of a queue counts.
create table key_cursor (
  queue     text not null,
  version   bigint generated always as identity,
  seq       bigint not null,   -- the last one given out when this was written
  lanes     int[] not null,
  seqs      bigint[] not null, -- of each lane: the waiting rows up to here were read
  writers   text[] not null,   -- transactions that may still commit rows up to `seq`
  from_seqs bigint[] not null, -- of each writer: its rows lie after this
  mark_seq  bigint not null,   -- turns given out up to here have waited long enough to be anybody's
  next_seq  bigint not null,   -- the next mark, and when it was made
  next_at   timestamptz not null,
  primary key (queue, version)
);

-- What a deployment says about a queue's keys. Claims bring it along. No row: the defaults.
create table key_policy (
  queue         text primary key,
  blocks        boolean not null, -- a dead job blocks its partition key until it is replayed or discarded
  concurrency   int,              -- of one fair key; null: no cap
  seconds_apart float8            -- between two starts of one fair key; null: no rate
);
