-- Alarms: what is wrong and since when, and the notices of it on their way to their targets.

create table alarm (
  alarm        text not null,
  queue        text, -- null: all
  job_type     text, -- null: all
  version      bigint not null, -- a watcher changes only what it has seen
  phase        text not null check (phase in ('ok', 'pending', 'firing')),
  since        timestamptz not null, -- when the trouble was first seen
  changed_at   timestamptz not null,
  recent       boolean[] not null, -- which of the last rounds were bad, until it fires
  clear_rounds int not null, -- clearly good ones in a row, while it fires
  told         text not null check (told in ('ok', 'firing')), -- what the targets know
  told_at      timestamptz,
  severity     text not null check (severity in ('critical', 'warning', 'info')),
  value        float8,
  threshold    float8 not null,
  summary      text not null
);
create unique index alarm_by_key on alarm (alarm, queue, job_type) nulls not distinct;

-- One for each notice and target. It is written by the statement that changes the alarm, so a watcher that dies
-- between raising and delivering loses nothing.
create table delivery (
  seq         bigint generated always as identity primary key,
  id          uuid not null unique, -- the webhook-id, the same for all tries
  target      text not null,
  about       text not null, -- the alarm, its queue and type: of these a target hears in order
  notice      jsonb not null,
  created_at  timestamptz not null default now(),
  state       text not null default 'pending' check (state in ('pending', 'delivered', 'given_up')),
  tries       int not null default 0, -- fences: only the latest try may say how it ended
  next_try_at timestamptz not null default now(), -- while it is tried: when its deliverer is taken for dead
  ended_at    timestamptz,
  status      int, -- of the last answer
  error       text,
  check ((state = 'pending') = (ended_at is null))
);
create index delivery_due on delivery (next_try_at) where state = 'pending';
create index delivery_in_order on delivery (target, about, seq) where state = 'pending';
create index delivery_ended on delivery (ended_at) where state <> 'pending';

-- How a target fares. Its URL may be a secret, so only its hash is here: another URL is another target.
create table alarm_target (
  name          text primary key,
  url_hash      text not null,
  off_since     timestamptz, -- it answered 410
  failing_since timestamptz,
  delivered_at  timestamptz,
  status        int,
  error         text
);

create table alarm_silence (
  alarm text primary key,
  until timestamptz not null
);

-- What the inspection (inspect.sql) found and nobody has repaired yet; at most 100.
create table impossible_state (
  kind    text not null check (kind in ('job', 'lease', 'done')), -- the table
  id      uuid not null, -- of the job; the key of the lease; the highest id of the row of `done`
  what    text not null, -- is wrong with it
  seen_at timestamptz not null default now(), -- first
  primary key (kind, id)
);
