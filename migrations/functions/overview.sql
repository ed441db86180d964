-- overview: what the first page needs beside the snapshot, in one row: the history, alarms that fire, pauses, the next slots of
-- schedules, and how long jobs of all types waited in the last hour.
create or replace function overview(
  p_minutes int, p_buckets int, p_queues int,
  out at timestamptz, out since timestamptz, out queues json, out gaps json, out marks json,
  out firing json, out pauses json, out next_slots json, out durations json, out bounds float8[]
)
language sql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
  select history.at, history.since, history.queues, history.gaps, history.marks,
    (select coalesce(json_agg(json_build_object(
              'alarm', alarm.alarm, 'queue', alarm.queue, 'job_type', job_type, 'severity', severity, 'since', alarm.since,
              'summary', summary, 'silenced_until', silence.until) order by alarm.since), '[]')
     from alarm left join alarm_silence as silence on silence.alarm = alarm.alarm and silence.until > now()
     where phase = 'firing'),
    (select coalesce(json_agg(json_build_object('kind', kind, 'name', name, 'since', pause.since) order by pause.since), '[]')
     from pause),
    (select coalesce(json_agg(next order by next.slot), '[]')
     from (select name, cron, time_zone, slot from next_slots(5) join schedule using (number)) as next),
    (select coalesce(json_object_agg(measure, buckets), '{}')
     from (
       select measure, json_object_agg(bucket, jobs) as buckets
       from (
         select measures.key as measure, bucket.key as bucket, sum(bucket.value::bigint) as jobs
         from recent_durations(), jsonb_each(recent_durations.measures) as measures, jsonb_each_text(measures.value) as bucket
         where type <> 'sluice.canary'
         group by 1, 2
       ) as summed
       group by measure
     ) as by_measure),
    duration_bounds()
  from read_history(p_minutes, p_buckets, p_queues) as history
$$;

-- The schedules whose next slots come first. A schedule has at most 360 slots ahead (src/core/policy/slots.ts), so so many slots
-- are of five schedules at least. A paused schedule has none.
create or replace function next_slots(p_limit int) returns table (number bigint, slot timestamptz)
language sql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off -- in the order of the index, and no further than needed
set jit = off
as $$
  select schedule_of_slot(id), min(run_at)
  from (select id, run_at from scheduled where place = -1 and run_at >= now() order by run_at limit 2000) as planned
  group by 1 order by 2 limit p_limit
$$;
