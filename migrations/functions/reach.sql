-- check_reach: whether every pending job can be found from the cursors, checked in production too. The argument in
-- advance-cursors.sql says that it can; this is for what the argument does not know, and for rows changed by hand.
--
-- It walks over the tables by their pages, some at a time, and goes on where it stopped: an index scan to the left of the
-- cursors would step over every dead row that a pinned snapshot keeps, and could not be bounded.

-- The next pages of a table, as a range of tids. After the last one it begins again.
create or replace function next_pages(p_table text, p_pages int, out first tid, out beyond tid)
language plpgsql as $$
declare
  v_page bigint;
begin
  insert into sweep as known (table_name, page) values (p_table, 0)
  on conflict (table_name) do update
  set page = case when (known.page + p_pages) * current_setting('block_size')::int < pg_relation_size(p_table::regclass)
                  then known.page + p_pages else 0 end
  returning page into v_page;
  first := format('(%s,0)', v_page)::tid;
  beyond := format('(%s,0)', v_page + p_pages)::tid;
end $$;

-- How many jobs there were that no claim would have found and that no gap explains. They are brought back: a row of
-- `ready` gets a new place; for those of `scheduled` a gap is written, which the next advance closes. One snapshot holds
-- rows, cursors and gaps.
create or replace function check_reach(p_pages int default 4000, p_limit int default 1000) returns int
language plpgsql
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  v_pages    record;
  v_ready    int;
  v_late     int;
  v_earliest timestamptz;
begin
  v_pages := next_pages('ready', p_pages);
  with newest as materialized (
    select cursor_seqs from cursors order by id desc limit 1
  ),
  unreachable as materialized (
    select ready.ctid as tid
    from newest cross join ready
    where ready.ctid >= v_pages.first and ready.ctid < v_pages.beyond and seq < newest.cursor_seqs[lane]
      and not exists (
        select from cursor_gap
        where cursor_gap.cursor_seqs is not null and coalesce(cursor_gap.cursor_seqs[ready.lane], 0) <= ready.seq)
    limit p_limit
    for update of ready skip locked
  )
  update ready set seq = nextval('ready_seq') where ctid = any(array(select tid from unreachable));
  get diagnostics v_ready = row_count;

  v_pages := next_pages('scheduled', p_pages);
  with newest as materialized (
    select scheduled_cursor from cursors order by id desc limit 1
  )
  select count(*), min(run_at) into v_late, v_earliest
  from newest cross join scheduled
  where scheduled.ctid >= v_pages.first and scheduled.ctid < v_pages.beyond and run_at < newest.scheduled_cursor
    and not exists (select from cursor_gap where cursor_gap.scheduled_cursor <= run_at);
  if v_late > 0 then
    insert into cursor_gap (writer, scheduled_cursor) values ('xid/' || pg_current_xact_id(), v_earliest)
    on conflict do nothing;
  end if;
  return v_ready + v_late;
end $$;
