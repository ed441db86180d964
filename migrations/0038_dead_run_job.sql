-- The first jobs that a run has replayed, so that its page can say what became of them (run-outcomes.sql).
create table dead_run_job (
  run_id bigint not null,
  id     uuid not null,
  primary key (run_id, id)
);
