alter table scheduled
  add key bigint,
  add place bigint; -- not null: this job holds a turn of its key
create index if not exists scheduled_by_key on scheduled (key) where place is not null;
