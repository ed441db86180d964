-- The books: enqueued = completed + dead + discarded + cancelled + pending + leased, for each type, in every snapshot.

-- Folds what the statements appended into a row for each minute and lane. One at a time; whatever it does not see
-- yet stays for the next, so the sum of both tables is exact at any moment.
create or replace function fold_ledger(p_limit int) returns int
language plpgsql
set search_path from current
as $$
declare
  v_folded tally[];
  v_rows   int;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('sluice.fold.' || current_schema(), 0)) then
    return 0;
  end if;
  with removed as (
    delete from ledger where ctid = any(array(select ctid from ledger limit p_limit)) returning *
  ),
  summed as (
    select row(date_trunc('minute', at), lane, coalesce(sum(enqueued), 0), coalesce(sum(pending), 0),
               coalesce(sum(leased), 0), coalesce(sum(completed), 0), coalesce(sum(failed), 0), coalesce(sum(dead), 0),
               coalesce(sum(discarded), 0), coalesce(sum(cancelled), 0))::tally as entry,
           count(*) as entries
    from removed group by date_trunc('minute', at), lane
  )
  select array_agg(entry), coalesce(sum(entries), 0) into v_folded, v_rows from summed;
  perform add_to_tally(v_folded);
  return v_rows;
end $$;

-- Minutes older than a day become part of the one row that has no minute.
create or replace function fold_tally(p_limit int) returns int
language plpgsql
set search_path from current
as $$
declare
  v_folded tally[];
  v_rows   int;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('sluice.fold.' || current_schema(), 0)) then
    return 0;
  end if;
  with removed as (
    delete from tally
    where (minute, lane) in (
      select minute, lane from tally
      where minute > '-infinity' and minute < now() - interval '25 hours'
      order by minute limit p_limit)
    returning *
  ),
  summed as (
    select row('-infinity', lane, sum(enqueued), sum(pending), sum(leased), sum(completed), sum(failed), sum(dead),
               sum(discarded), sum(cancelled))::tally as entry,
           count(*) as entries
    from removed group by lane
  )
  select array_agg(entry), coalesce(sum(entries), 0) into v_folded, v_rows from summed;
  perform add_to_tally(v_folded);
  return v_rows;
end $$;

create or replace function add_to_tally(p_entries tally[]) returns void
language sql as $$
  insert into tally as known
  select * from unnest(p_entries)
  on conflict (minute, lane) do update
  set enqueued = known.enqueued + excluded.enqueued, pending = known.pending + excluded.pending,
      leased = known.leased + excluded.leased, completed = known.completed + excluded.completed,
      failed = known.failed + excluded.failed, dead = known.dead + excluded.dead,
      discarded = known.discarded + excluded.discarded, cancelled = known.cancelled + excluded.cancelled
$$;

create or replace view books as
select queue, type, priority,
       coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending,
       coalesce(sum(leased), 0) as leased, coalesce(sum(completed), 0) as completed,
       coalesce(sum(failed), 0) as failed, coalesce(sum(dead), 0) as dead,
       coalesce(sum(discarded), 0) as discarded, coalesce(sum(cancelled), 0) as cancelled
from lane
left join (
  select lane, enqueued, pending, leased, completed, failed, dead, discarded, cancelled from tally
  union all
  select lane, enqueued, pending, leased, completed, failed, dead, discarded, cancelled from ledger
) as entries using (lane)
group by queue, type, priority;
