-- What the charts of the last day are drawn from. The fold of the ledger writes it, so no job pays for it. Three lengths of a
-- bucket, and prune keeps 50 buckets of each: 50 minutes, 4 hours and 25 hours.
create table history (
  minutes   smallint not null check (minutes in (1, 5, 30)), -- how long the bucket is
  at        timestamptz not null, -- its start
  lane      int not null,
  enqueued  bigint not null,
  due       bigint not null, -- the change in the number of due jobs
  completed bigint not null,
  failed    bigint not null, -- attempts
  retried   bigint not null, -- failed attempts that were not the job's last one
  died      bigint not null, -- jobs that became dead; a replay does not take it back
  primary key (minutes, at, lane)
);

-- Histograms as in `duration`, of the last hour in parts of ten minutes.
create table recent_duration (
  at      timestamptz not null,
  lane    int not null,
  measure text not null check (measure in ('waiting', 'processing')),
  bucket  smallint not null,
  jobs    bigint not null,
  primary key (at, lane, measure, bucket)
);

-- When jobs of a lane were enqueued: a list of a rare type need not pass all other jobs (spans.sql). The row of lane 0 says
-- since when spans are noted. Only `until` is ever updated.
create table lane_span (
  lane  int not null,
  since timestamptz not null,
  until timestamptz not null,
  primary key (lane, since)
) with (fillfactor = 70);

-- Jobs of one lane that waited or were processed for about as long.
create type timed_jobs as (
  at      timestamptz,
  lane    int,
  measure text,
  bucket  smallint,
  jobs    bigint,
  seconds float8
);

-- What a list of jobs wants (search.sql). Null: any.
create type job_search as (
  status        text,
  lanes         int[],
  is_any_lane   boolean, -- every lane fits
  has_spans     boolean, -- the lanes are few enough to ask for their spans
  tag           text,
  partition_key text,
  fair_key      text,
  is_checked    boolean  -- ids come from `job` or `job_tag`, and each one is looked up
);

-- What happened to alarms, also while they were silenced. prune_deliveries removes old rows.
create table alarm_event (
  id        bigint generated always as identity primary key,
  at        timestamptz not null default now(),
  alarm     text not null,
  queue     text,
  job_type  text,
  event     text not null check (event in ('firing', 'resolved', 'silenced', 'unsilenced')),
  severity  text,        -- of the alarm when it fired or was resolved
  value     float8,
  threshold float8,
  since     timestamptz, -- when the trouble was first seen
  summary   text,
  until     timestamptz, -- of a silence
  actor     text,        -- who silenced it
  reason    text,
  check ((event in ('firing', 'resolved')) = (severity is not null)),
  check ((event = 'silenced') = (until is not null))
);
