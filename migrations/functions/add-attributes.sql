-- Attributes that a release adds to types of the numbered files, or removes. They change here and not by a numbered file: the
-- functions that build these types change in the same transaction, so no caller meets a type that its function does not fit. The
-- name of this file puts it before all others.
create or replace function add_attribute(p_type text, p_name text, p_definition text) returns void
language plpgsql as $$
begin
  if not exists (
    select from pg_attribute
    where attrelid = p_type::regclass and attname = p_name and not attisdropped
  ) then
    execute format('alter type %I add attribute %I %s', p_type, p_name, p_definition);
  end if;
end $$;

do $$
begin
  perform add_attribute('new_job', 'fair_key', 'text');
  perform add_attribute('lane_level', 'kinds', 'text[]');
  perform add_attribute('locked_jobs', 'keys', 'bigint[]');
  perform add_attribute('locked_jobs', 'places', 'bigint[]');
  perform add_attribute('taken_jobs', 'keys', 'bigint[]');
  perform add_attribute('taken_jobs', 'places', 'bigint[]');
  perform add_attribute('taken_jobs', 'kind', 'text');
  perform add_attribute('settled_job', 'key', 'bigint');
  perform add_attribute('settled_job', 'place', 'bigint');
  perform add_attribute('settled_job', 'is_last', 'boolean');
  perform add_attribute('new_job', 'after', 'jsonb');
  perform add_attribute('new_job', 'on_blocker_dead', 'text');
  perform add_attribute('new_job', 'debounce', 'jsonb');
  perform add_attribute('new_job', 'throttle', 'jsonb');
  perform add_attribute('taken_jobs', 'linked', 'boolean');
  perform add_attribute('taken_jobs', 'blockers', 'jsonb');
  perform add_attribute('taken_jobs', 'schedules', 'jsonb');
  perform add_attribute('linked_job', 'schedule', 'jsonb');
  perform add_attribute('settled_job', 'linked', 'boolean');
  perform add_attribute('settled_job', 'more', 'jsonb'); -- of a completion: `next`; of a suspend: what it waits for
  perform add_attribute('settled_job', 'worker', 'text');
  perform add_attribute('job_move', 'more', 'jsonb');
  perform add_attribute('job_move', 'worker', 'text');
  perform add_attribute('claim_batch', 'queue', 'text');
  perform add_attribute('claim_batch', 'has_keys', 'boolean');
  perform add_attribute('claim_batch', 'buckets', 'int[]');
  perform add_attribute('claim_batch', 'mark_seq', 'bigint');
  perform add_attribute('claim_batch', 'turns_returned', 'boolean');
  perform add_attribute('claim_batch', 'policy', 'key_policy');
  perform add_attribute('granted_jobs', 'seqs', 'bigint[]');
  perform add_attribute('granted_jobs', 'turns', 'int[]'); -- of each key, those that were out before
  alter type key_proposal drop attribute if exists next_at, drop attribute if exists has_more; -- nobody reads them any more
end $$;
