-- Turns that were given out ahead, for claims that will come (turns-ahead.sql).

-- A grant of which some jobs were not claimed yet. Whoever deletes the row has the grant.
create table grant_ahead (
  id    bigint primary key, -- of the grant
  lane  int not null,
  after bigint not null,    -- jobs up to this place were claimed
  bucket int not null,      -- of its first key; the others have the same owner
  seq   bigint not null     -- of `ready`, as far as it was used when the turns were given out
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

alter table key_cursor
  add ahead bigint[] not null default '{}'; -- the grants that the last dispatch gave out ahead
