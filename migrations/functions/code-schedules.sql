-- The schedules that a deployment has in its code. Each round of a deployment shows the checksum of its set. Of the sets that were
-- seen in the last 15 minutes the one that was first seen last is the newest, and it is applied once. So during a gradual deployment
-- the rounds of the old version change nothing. An older set counts again when the newer one was not seen for 15 minutes: after a
-- rollback.

-- True: the caller's set is the newest and is not applied yet.
create or replace function meet_code_schedules(p_checksum text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
declare
  c_gone constant interval := interval '15 minutes';
  c_note constant interval := interval '4 minutes'; -- a row is updated this often at most
begin
  delete from code_schedules where seen_at < clock_timestamp() - c_gone and checksum <> p_checksum;
  insert into code_schedules as known (checksum) values (p_checksum)
  on conflict (checksum) do update
  set seen_at = clock_timestamp()
  where known.seen_at < clock_timestamp() - c_note;
  return not exists (
    select from code_schedules as known
    where known.checksum <> p_checksum
      and known.first_seen_at > (select first_seen_at from code_schedules where checksum = p_checksum))
    and not (select applied from code_schedules where checksum = p_checksum);
end $$;

-- Makes the schedules of source `code` those of this set, [{ name, … } as in put_schedule]. Two deployments that apply at the same time
-- do so one after the other. Answers how many were put and removed.
create or replace function apply_code_schedules(p_checksum text, p_schedules jsonb, out put int, out removed int)
language plpgsql
security definer
set search_path from current
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('sluice.code_schedules.' || current_schema(), 0));
  put := 0;
  removed := 0;
  if not meet_code_schedules(p_checksum) then -- in a snapshot that is younger than the lock
    return;
  end if;
  select count(*) filter (where delete_schedule('deployment', name)) into removed
  from (select name from schedule
        where source = 'code' and name <> all(array(select value ->> 'name' from jsonb_array_elements(p_schedules)))
        order by name offset 0) as gone;
  select count(put_schedule('deployment', value ->> 'name', value, 'code')) into put
  from (select value from jsonb_array_elements(p_schedules) order by value ->> 'name' offset 0) as wanted;
  update code_schedules set applied = checksum = p_checksum where applied <> (checksum = p_checksum);
end $$;
