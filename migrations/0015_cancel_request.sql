-- Running jobs that somebody wants to be cancelled (cancel.sql). It has a row of its own, so that jobs which nobody cancels
-- pay nothing. The row goes when the job ends as cancelled. If the job completes first, the row goes with the job.
create table cancel_request (
  id           uuid primary key,
  requested_at timestamptz not null default now()
);
