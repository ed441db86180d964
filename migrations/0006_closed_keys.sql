-- Not null: this dead job holds the turn of its key, so it blocks the key.
alter table closed add key bigint, add place bigint;
create index if not exists closed_by_key on closed (key) where key is not null;
