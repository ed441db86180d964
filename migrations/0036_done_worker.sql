-- The worker that completed the batch: a drain or a puller. Null for batches from before this migration, and for jobs that
-- were resolved by hand.
alter table done add worker text;
