-- A job with a key waits in `ready` under the negative number of its lane, where no claim finds it. A row with a key and a
-- positive lane holds a turn of its key (dispatch.sql). `ready` has 8 columns now. A ninth would make the header of every
-- row 8 bytes longer.
alter table ready
  add key bigint,        -- 64 bits of a hash of the queue and the key; null: no key
  add place bigint,      -- of a turn: the job's place in its key. The place of a waiting row is its seq
  add returned bigint[]; -- in a lane of kind `returns`: keys, and then the places up to which each was worked
create index if not exists ready_by_key on ready (key, seq) where key is not null;
create index if not exists ready_by_bucket on ready (lane, (abs(key % 360)), seq) where place is not null;
