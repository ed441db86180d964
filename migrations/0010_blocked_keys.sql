-- The dead jobs of a lane that block their keys, the longest first. Only dead jobs have a key here. The status is named so that a
-- look for one key (`key = …`) cannot choose this index: it has to use closed_by_key.
create index if not exists closed_blocking on closed (lane, closed_at, id) where key is not null and status = 'dead';
