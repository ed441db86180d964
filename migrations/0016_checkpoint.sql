-- What the durable steps of a job have returned (checkpoint.sql). A row is written once and goes with its job.
create table checkpoint (
  id    uuid not null,
  name  text not null,
  value jsonb not null, -- of a sleep or a wait: when it is over, in milliseconds since 1970
  primary key (id, name)
);
