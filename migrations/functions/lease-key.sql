-- The key of a lease: 64 bits of its generation, then 62 random bits. Keys sort by their generation.
--
-- Two things must hold, even after a failover that lost transactions, after a restore to a point in time, and when the
-- clock has stepped:
--
-- 1. No key is given out twice. The random bits see to that.
-- 2. The later of two claims of one job has the higher generation, so that handlers can fence their own writes with it.
--    Within one database this holds because a claim takes its key after it has locked its rows, and because the sequence
--    only rises. After a failover the sequence may have an old value. So generations are microseconds: a claim that finds
--    the sequence more than a second behind the clock sets it to the clock. That is higher than every generation that was
--    lost, unless the lost claim is younger than a second. A clock that steps back changes nothing.

create or replace function new_lease_key() returns uuid
language plpgsql as $$
declare
  c_tries      constant int := 20;
  c_behind     constant bigint := 1000000; -- microseconds
  v_micros     bigint := date_part('epoch', clock_timestamp()) * 1000000;
  v_generation bigint;
begin
  for n in 1 .. c_tries loop
    v_generation := nextval('lease_generation');
    exit when v_generation >= v_micros - c_behind;
    -- The lock and the second look under it make sure that nobody moves the sequence back. A claim that takes a number
    -- meanwhile gets a lower or a higher one, never the same.
    if pg_try_advisory_xact_lock(hashtextextended('sluice.generation.' || current_schema(), 0)) then
      if nextval('lease_generation') < v_micros - c_behind then
        perform setval('lease_generation', v_micros);
      end if;
    else
      perform pg_sleep(0.001); -- c_tries bounds the wait: the lock's holder may stay in its transaction for long
    end if;
  end loop;
  return (lpad(to_hex(v_generation), 16, '0') || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid;
end $$;

create or replace function generation_of(lease_key uuid) returns bigint
language sql immutable
return ('x' || left(replace(lease_key::text, '-', ''), 16))::bit(64)::bigint;
