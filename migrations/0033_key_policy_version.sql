-- The policies that the deployments of a queue have lately (key-policy.sql).
create table key_policy_version (
  queue         text not null,
  policy        jsonb not null,
  first_seen_at timestamptz not null default clock_timestamp(),
  seen_at       timestamptz not null default clock_timestamp(),
  primary key (queue, policy)
);
