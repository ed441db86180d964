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
  perform add_attribute('claim_batch', 'straight', 'int[]'); -- lanes of jobs with keys that the claim may take straight
  perform add_attribute('claim_batch', 'granting', 'int[]'); -- lanes whose new turns are part of grants
  perform add_attribute('claim_batch', 'grant_base', 'bigint'); -- the grant of a lane is this and the lane's number
  perform add_attribute('claim_batch', 'waited', 'bigint[]'); -- keys that have got their turns, and of which more jobs may wait
  perform add_attribute('claim_batch', 'ended_grants', 'bigint[]'); -- by the outcomes that came along
  perform add_attribute('locked_jobs', 'grant_id', 'bigint');
  perform add_attribute('taken_jobs', 'grant_id', 'bigint');
  perform add_attribute('granted_jobs', 'locked', 'locked_jobs'); -- their rows as they were locked, if all were
  perform add_attribute('claim_batch', 'held', 'bigint[]'); -- keys whose turns are part of open grants
  perform add_attribute('key_proposal', 'is_held', 'boolean'); -- its turn is part of an open grant
  perform add_attribute('settled_job', 'ended_grant', 'bigint'); -- its lease ended, and this grant with it
  perform add_attribute('settled_job', 'apart', 'bigint[]'); -- keys that had left that lease before
  perform add_attribute('taken_jobs', 'apart', 'bigint[]'); -- keys of the grant, but not of these jobs
  perform add_attribute('claim_batch', 'asked', 'int'); -- how many jobs the claim asked for
  perform add_attribute('claim_batch', 'owners', 'int[]'); -- of each bucket, the number of the worker that owns it
  -- nobody reads these any more
  alter type key_proposal drop attribute if exists next_at, drop attribute if exists has_more;
  alter type key_look drop attribute if exists own_seqs, drop attribute if exists free_seqs;
end $$;
