-- The worker that held the lease: a drain or a puller. Null for attempts from before this migration.
alter table failed_attempt add worker text;
