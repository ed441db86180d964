-- menu_counts: the numbers beside the menu of the dashboard: dead letters, alarms that fire aloud, and those that fire but are
-- silenced. It counts no jobs: dead letters are added up from their groups.
create or replace function menu_counts(out dead bigint, out firing bigint, out silenced bigint)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select count_dead(null, null, null, null),
         count(*) filter (where silence.until is null), count(*) filter (where silence.until is not null)
  from alarm left join alarm_silence as silence on silence.alarm = alarm.alarm and silence.until > now()
  where phase = 'firing'
$$;
