-- When a durable step was stored, and how long it took (checkpoint.sql). Null in rows that are older than this.
alter table checkpoint
  add stored_at timestamptz,
  add took_ms real; -- of a sleep: below 0, the time from then on until it is over. Null: not known
