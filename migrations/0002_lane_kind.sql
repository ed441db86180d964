-- What a lane's jobs have: no key, a partition key (one at a time, in order) or a fair key (turns between keys). A lane of
-- kind `returns` holds no jobs: its rows say which keys' turns have ended. Each queue with keys has one of these.
alter table lane add kind text not null default 'plain' check (kind in ('plain', 'ordered', 'fair', 'returns'));
create index lane_with_keys on lane (queue) where kind <> 'plain';
