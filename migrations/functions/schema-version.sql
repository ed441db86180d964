-- The version of the schema: a number that rises whenever the Worker needs something that the version before lacks.
-- src/core/schema-version.ts has the number that the Worker needs. docs/migrations.md says when to raise both.
create or replace function schema_version() returns int
language sql immutable parallel safe
return 2;

-- A newer schema is fine: it still has all that an older Worker calls.
create or replace function require_schema_version(p_version int) returns int
language plpgsql
security definer
set search_path from current
as $$
begin
  if schema_version() < p_version then
    raise exception using errcode = 'SL503',
      message = format('Sluice''s schema has version %s and this Worker needs version %s: run `npx sluice migrate`',
                       schema_version(), p_version);
  end if;
  return schema_version();
end $$;
