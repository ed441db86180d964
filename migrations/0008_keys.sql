-- What the dispatcher knows of keys, and how far it has read. dispatch.sql explains it.

-- How many turns of a key are out. The dispatcher alone writes it. The newest row of a key counts, so a pinned database
-- only leaves dead rows to the left of the one that is read.
create table key_state (
  key     bigint not null,
  version bigint generated always as identity,
  turns   int not null,
  low     bigint not null, -- no row of the key waits up to here, unless `late` says so
  late    bigint,          -- a row that was committed late waits from here on, behind the turn that is out
  next_at timestamptz      -- with a rate: nothing of the key starts before this; infinity: a job that may start has not
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

-- Jobs whose turn it is. The dispatcher has locked their rows of `ready`, which still stand under the negative lane.
create type granted_jobs as (
  tids   tid[],
  keys   bigint[],
  places bigint[],
  lanes  int[],
  heads  boolean[] -- false: the job follows another of its key in a run
);

-- A key that the dispatcher looks at, with a job of it that waits.
create type key_proposal as (
  key       bigint,
  state     tid,         -- its newest row in key_state; null: none, and the next four are those of an unused key
  turns     int,
  low       bigint,
  late      bigint,
  next_at   timestamptz,
  returned  int,         -- how many of its turns have come back
  place     bigint,      -- the last place that was worked, as the turns that came back say
  first_seq bigint,      -- the first of its rows that were just read or are late
  start     bigint,      -- waiting rows were looked for after this
  number    int,         -- of the job among those of the key that were found
  tid       tid,         -- of the waiting row; null: none was found
  seq       bigint,
  lane      int
);

-- A job that did not complete, on its way to `ready`, `scheduled` or `closed`.
create type job_move as (
  id           uuid,
  lane         int,      -- negative: it waits for its turn
  attempt      smallint,
  abandonments smallint,
  started_at   timestamptz,
  outcome      text,
  reason       text,     -- it is dead; null: it runs again
  message      text,
  detail       jsonb,
  seconds      float8,
  seq          bigint,   -- in `ready`, where it keeps the one that it had
  key          bigint,
  place        bigint,
  queue        text,
  returned     bigint[]  -- the turn that goes back with this job: a key and a place
);

-- A turn that was held by a job of this lane.
create type held_turn as (
  lane  int,
  key   bigint,
  place bigint
);
