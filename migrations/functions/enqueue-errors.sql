-- record enqueue errors: an isolate counts the enqueues that it answered with a 5xx or refused because the queue was full.
-- From time to time it adds its count here. snapshot() sums them up by minute.
create or replace function record_enqueue_errors(p_errors int) returns void
language sql
security definer
set search_path from current
as $$
  insert into enqueue_error (errors) values (p_errors)
$$;
