-- check_reach: checks in production that a claim can find every pending job. advance-cursors.sql proves that it can.
-- This check is for rows that somebody changed by hand, and for a mistake in the proof.
--
-- It reads the tables page by page, some pages in each call, and goes on where it stopped. An index scan before the
-- cursors would step over every dead row that a pinned snapshot keeps, so its cost would have no bound.

-- The next pages of a table, as a range of row positions. After the last page it starts again at the first.
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

-- Returns how many jobs lay before the cursors without a gap that covers them. It makes them reachable: a row of `ready`
-- gets a new seq, and for rows of `scheduled` it writes a gap, which the next advance closes. Each statement reads rows,
-- cursors and gaps in one snapshot.
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
