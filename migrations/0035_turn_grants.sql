-- Turns that one claim gave out together and that come back together. dispatch.sql explains it.

-- A claim's jobs of one lane. The keys hold their turns while the row is there and names them.
create table turn_grant (
  id     bigint primary key,
  keys   bigint[] not null,
  places bigint[] not null, -- of the first job of each
  waited bigint[] not null, -- keys of which more jobs may wait
  starts bigint[] not null  -- and the places after which they are
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
-- The id of a grant is the next value and the number of its lane, which is smaller than a step.
create sequence turn_grant_base increment by 1048576;

alter table key_cursor
  add grants bigint[] not null default '{}', -- those that are open
  add highest bigint not null default 0;     -- no turn's place is higher; it stays when the positions start again
update key_cursor set highest = seq;
alter table lease
  add grant_id bigint, -- the turns of its jobs are part of this grant, which ends with the lease
  add apart bigint[];  -- keys that have left the lease before its end
-- A lease of 100 jobs with keys has 3.3 kB. Compressing it would take longer than writing it.
alter table lease set (toast_tuple_target = 8160);

-- A key of which the dispatcher has read a waiting row, if that changes the key's state.
create type read_key as (
  key        bigint,
  state      tid,    -- null: it has none
  seq        bigint, -- of the row
  is_fair    boolean,
  is_granted boolean,
  is_counted boolean -- the turn that it got is part of no grant
);

-- What the dispatcher saw when it looked at waiting rows.
create type key_look as (
  granted     granted_jobs,
  together    bigint[],   -- keys whose new turns are part of a grant
  waited      bigint[],   -- keys of which more than one row was read
  behind_keys bigint[],   -- keys of which a row was read behind a turn of a grant
  behind_seqs bigint[],
  other_keys  bigint[],   -- keys whose next job has to be looked up, and the first row of each that was read
  other_seqs  bigint[],
  changed     read_key[],
  own_seqs    bigint[],   -- of keys whose turn is free, if they are in the worker's buckets
  free_seqs   bigint[],   -- the same, in any bucket; null: without buckets
  free        int,        -- how many keys count as found
  rows        int,
  last_seq    bigint,
  is_all      boolean     -- no more rows wait
);

-- The lanes of a queue's jobs with keys that a claim asks for, best priority first.
create type key_lanes as (
  lanes      int[],
  priorities smallint[],
  are_fair   boolean[],
  straight   int[],  -- those whose jobs the claim may take as soon as they have got their turn
  granting   int[],  -- those of these whose jobs have partition keys: their turns can be part of a grant
  are_all    boolean, -- the queue has no others
  are_alike  boolean  -- they have partition keys and one priority, so it does not matter which of their turns are looked at first
);

-- A key that left its lease before the end of the lease's grant.
create type apart_key as (grant_id bigint, key bigint);
