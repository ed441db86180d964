-- mend_stamps: sets timestamps that lie in the future to now. After the clock has stepped back, timestamps written
-- before the step lie ahead of it. Whoever waits for the clock to pass them would wait for the length of the step.
-- docs/engine.md, "When the clock steps", has the whole table.
--
-- Each table here is small, or is read from the right end of an index. Steps of less than a second are ignored, because
-- a row that is written while this runs may be ahead by that much.
create or replace function mend_stamps(p_limit int default 1000) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  c_longest_lease constant interval := interval '1 hour';
  c_longest_retry constant interval := interval '1 hour'; -- of a notice
  c_rounds        constant int := 1000;
  v_now           timestamptz := clock_timestamp();
  v_ahead         timestamptz := v_now + interval '1 second';
  v_rows          int;
  v_mended        int;
begin
  -- A lease keeps its length. A live worker settles or extends as before.
  update lease
  set deadline = least(v_now + (deadline - greatest(started_at, v_now)), v_now + c_longest_lease),
      started_at = least(started_at, v_now)
  where ctid = any(array(
    select ctid from lease
    where deadline > v_now and (started_at > v_ahead or deadline > v_ahead + c_longest_lease)
    order by deadline desc limit p_limit
    for update skip locked));
  get diagnostics v_mended = row_count;

  -- The next probe runs in a minute. Attempts count from now on.
  update breaker
  set opened_at = least(opened_at, v_now), probed_at = least(probed_at, v_now), closed_at = least(closed_at, v_now)
  where greatest(opened_at, probed_at, closed_at) > v_ahead;
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;

  -- A run over dead letters never waits longer for its next step.
  update dead_run set next_at = v_now where state = 'running' and next_at > v_ahead + interval '2 minutes';
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;

  -- Alarms and /health decide by these times whether rounds, completions and errors are recent.
  update round set ended_at = v_now, started_at = least(started_at, v_now)
  where id = any(array(select id from round order by id desc limit c_rounds)) and ended_at > v_ahead;
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;
  update enqueue_error set at = v_now
  where ctid = any(array(select ctid from enqueue_error where at > v_ahead limit p_limit));
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows + bring_back_minutes(v_ahead);

  -- The times until an alarm is repeated, or a notice retried, start now.
  update alarm
  set since = least(since, v_now), changed_at = least(changed_at, v_now), notified_at = least(notified_at, v_now)
  where greatest(since, changed_at, notified_at) > v_ahead;
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;
  update alarm_target
  set gone_since = least(gone_since, v_now), failing_since = least(failing_since, v_now),
      delivered_at = least(delivered_at, v_now)
  where greatest(gone_since, failing_since, delivered_at) > v_ahead;
  update delivery set created_at = least(created_at, v_now), next_try_at = v_now
  where seq = any(array(
    select seq from delivery
    where state = 'pending' and (created_at > v_ahead or next_try_at > v_ahead + c_longest_retry)
    limit p_limit
    for update skip locked));
  get diagnostics v_rows = row_count;
  update api_key set last_used_at = v_now where last_used_at > v_ahead;
  return v_mended + v_rows;
end $$;
