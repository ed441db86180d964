-- Of a dead job: the fingerprint of its last error (fingerprint.sql), 0 if it did not die of an error. Null: it died before this
-- migration, and the reap round has not looked at it yet (mark_dead_letters). It counts in no group until then.
alter table closed add fingerprint bigint;
alter table closed alter fingerprint set default 0;
create index if not exists closed_by_death on closed (closed_at, id) where status = 'dead';
create index if not exists closed_by_group on closed (lane, reason, fingerprint, closed_at, id)
  where status = 'dead' and fingerprint is not null;
create index if not exists closed_unmarked on closed (id) where status = 'dead' and fingerprint is null;

-- Triggers, so that no way into `dead` or out of it can forget the groups. A statement that completes jobs does not touch `closed`.
create function note_deaths() returns trigger
language plpgsql
set search_path from current
as $$
begin
  if tg_op = 'INSERT' then
    insert into death (lane, reason, fingerprint, hour, dead, died, first_at, last_at)
    select lane, reason, fingerprint, date_bin('1 hour', closed_at, '2000-01-01 00:00+00'), count(*), count(*),
           min(closed_at), max(closed_at)
    from added where status = 'dead' and fingerprint is not null
    group by 1, 2, 3, 4;
  elsif tg_op = 'DELETE' then
    insert into death (lane, reason, fingerprint, hour, dead, died)
    select lane, reason, fingerprint, date_bin('1 hour', closed_at, '2000-01-01 00:00+00'), -count(*), 0
    from removed where status = 'dead' and fingerprint is not null
    group by 1, 2, 3, 4;
  else
    insert into death (lane, reason, fingerprint, hour, dead, died, first_at, last_at)
    select lane, reason, fingerprint, date_bin('1 hour', closed_at, '2000-01-01 00:00+00'), sum(change),
           greatest(sum(change), 0), min(closed_at) filter (where change > 0), max(closed_at) filter (where change > 0)
    from (select *, 1 as change from added union all select *, -1 from removed) as changed
    where status = 'dead' and fingerprint is not null
    group by 1, 2, 3, 4
    having sum(change) <> 0;
  end if;
  return null;
end $$;
create trigger note_deaths_added after insert on closed
  referencing new table as added for each statement execute function note_deaths();
create trigger note_deaths_changed after update on closed
  referencing old table as removed new table as added for each statement execute function note_deaths();
create trigger note_deaths_removed after delete on closed
  referencing old table as removed for each statement execute function note_deaths();
