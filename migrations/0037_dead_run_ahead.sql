-- What a step of a run has made pending for a time to come, so that a stop can take it back (stop-ahead.sql). One row for each step.
create table dead_run_ahead (
  run_id   bigint not null,
  until    timestamptz not null, -- when the last of them is due
  ids      uuid[] not null,
  run_ats  timestamptz[] not null, -- when each is due
  dead     jsonb not null, -- the row of `closed` that each had
  payloads jsonb -- of each, before the run's patch
);
create index dead_run_ahead_by_run on dead_run_ahead (run_id, until);
