-- The next slots of all schedules in the order of time, for the overview (overview.sql). Jobs are not in it, so a delayed job or a
-- retry writes nothing more.
create index if not exists scheduled_slots on scheduled (run_at) where place = -1;
