-- raise_cache_probe: see src/edge/database/query-cache.ts. A sequence only rises, also when several raise it at once, so
-- whoever reads it afterwards reads this number or a higher one.
create or replace function raise_cache_probe() returns bigint
language sql volatile
security definer
set search_path from current
as $$
  select nextval('cache_probe')
$$;
