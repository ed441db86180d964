-- hash key: a partition key or a fair key is stored as 64 bits of a hash of its queue and its text. Two keys of one queue with
-- the same hash would take turns with each other; nothing else would happen. The hash must never change.

-- `kind` is that of the lane: ordered or fair.
create or replace function key_of(queue text, kind text, key text) returns bigint
language sql immutable
return ('x' || encode(substring(sha256(convert_to(left(kind, 1) || queue || chr(1) || key, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;

-- Workers on the ring own buckets of partition keys.
create or replace function bucket_of(key bigint) returns int
language sql immutable
return abs(key % 360)::int;

-- The kind of lane that a job belongs to.
create or replace function kind_of(partition_key text, fair_key text) returns text
language sql immutable
return case when partition_key is not null then 'ordered' when fair_key is not null then 'fair' else 'plain' end;

-- The key of a job; null: it has none.
create or replace function key_of_job(queue text, partition_key text, fair_key text) returns bigint
language sql immutable
return case when coalesce(partition_key, fair_key) is not null
            then key_of(queue, kind_of(partition_key, fair_key), coalesce(partition_key, fair_key)) end;
