-- What the dispatcher knows of keys, and how far it has read. dispatch.sql explains it.

-- How many turns of a key are out. The dispatcher alone writes it. The row is updated in place: no index has a column that
-- changes, and half of each page is free for it. In a pinned database such a page fills up, and the row moves to a page
-- further on. Looks go from the end of the index (version desc), so they meet the newest row of a key first.
create table key_state (
  key     bigint not null,
  version bigint not null generated always as identity,
  turns   int not null,
  low     bigint not null, -- no row of the key waits up to here, unless `late` says so
  late    bigint,          -- a row that was committed late waits from here on, behind the turn that is out
  waits   boolean not null, -- rows of the key may wait for the turn that is out; false: none do
  listed  boolean not null default false, -- of a fair key: its next job has a turn and was not claimed yet
  next_at timestamptz      -- of a fair key with a rate: nothing starts before this
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
create unique index key_state_by_key on key_state (key, version);

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

-- A key that the dispatcher looks at, with the job of it that is next.
create type key_proposal as (
  key       bigint,
  state     tid,         -- its row in key_state; null: none, and the next five are those of an unused key
  turns     int,
  low       bigint,
  late      bigint,
  waits     boolean,
  listed    boolean,
  next_at   timestamptz,
  returned  int,         -- how many of its turns have come back
  place     bigint,      -- the last place that was worked, as the turns that came back say
  first_seq bigint,      -- the first of its rows that were just read or are late
  start     bigint,      -- waiting rows were looked for after this
  head_seq  bigint,      -- the first of its waiting rows; null: not looked for
  tid       tid,         -- of the row that is next; null: none gets a turn now
  seq       bigint,
  lane      int,
  kind      text,
  rank      bigint,      -- lower ones come first
  has_more  boolean,     -- more rows of the key may wait
  is_passed boolean      -- a fair key that has only jobs of types that the claim cannot take: to be looked at again
);

-- Jobs whose turn it is, in the order in which they are to be taken. The dispatcher has locked their rows of `ready`, which
-- still stand under the negative lane.
create type granted_jobs as (
  tids   tid[],
  keys   bigint[],
  lanes  int[],
  heads  int -- so many are the first of their keys and hold a turn; the others follow them in runs
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
