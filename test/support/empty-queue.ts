// Empties the queue between tests: every table except those that outlive the jobs. Sequences go on, as in a real database.
// It truncates only tables with rows, because truncating all of them takes ten times as long.
export const emptyQueue = `
  do $$
  declare
    v_filled text;
  begin
    select string_agg(oid::regclass::text, ', ') into v_filled
    from pg_class
    where relnamespace = 'sluice'::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0
      and relname not in ('migration', 'api_key', 'audit', 'worker_role');
    if v_filled is not null then
      execute 'truncate ' || v_filled;
    end if;
  end $$`;
