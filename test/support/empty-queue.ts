// Empties the queue between tests: every table but those that outlive the jobs; sequences go on, as they do in life. To
// truncate them all takes ten times as long as to look which of them hold anything.
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
