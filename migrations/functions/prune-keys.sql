-- prune keys: removes what is known of keys that nobody uses. Without it `key_state` would grow with every key that was ever
-- used. A key that comes back later starts as an unused one, which is always right: only the look for its first job starts
-- from the beginning.
--
-- It walks over some pages of the table in each call. It needs the locks of all queues with keys, since a key does not say
-- which queue it is of: a dispatcher that has read a row must find it again. It tries the locks and waits for none.
create or replace function prune_keys(p_pages int default 1000, p_unused_for int default 10000 /* transactions */) returns int
language plpgsql as $$
declare
  v_pages  record;
  v_pruned int;
begin
  if not coalesce((select bool_and(is_locked)
                   from (select pg_try_advisory_xact_lock(keys_lock_of(queue)) as is_locked
                         from (select distinct queue from lane where kind <> 'plain') as name) as locks), false) then
    return 0;
  end if;
  v_pages := next_pages('key_state', p_pages);
  delete from key_state
  where ctid >= v_pages.first and ctid < v_pages.beyond
    and turns = 0 and not waits and not listed and late is null and (next_at is null or next_at < clock_timestamp())
    and age(xmin) > p_unused_for;
  get diagnostics v_pruned = row_count;
  return v_pruned;
end $$;
