-- settle one: what became of one claimed job. Answers as answer_with_job does; `applied` is false when the lease is lost,
-- and the job then shows what happened instead. `p_outcomes` holds one outcome in the form that settle takes, null for a
-- completion without output.
create or replace function settle_one(p_id uuid, p_key uuid, p_outcomes jsonb default null) returns jsonb
language plpgsql
security definer
set search_path from current
as $$
declare
  v_status text := (settle(array[p_id], array[p_key], p_outcomes))[1];
begin
  return answer_with_job(p_id, v_status is not null);
end $$;
