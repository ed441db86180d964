-- The workers that share a queue's partition keys (workers.sql): pullers that register, and drains of more than one batch.
--
-- A heartbeat inserts the next row of its worker and deletes the one before. Dead rows stay while the database is pinned, so
-- every read names a time: it meets what was written in the last 30 seconds, and no older row, dead or alive.
create table worker (
  worker_id  text not null,
  kind       text not null check (kind in ('puller', 'drain')),
  queues     text[] not null,
  started_at timestamptz not null,
  seen_at    timestamptz not null, -- the last heartbeat that was written
  primary key (worker_id, seen_at)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index worker_by_time on worker (seen_at);
