-- The key of a lease: 64 bits of its generation, then 62 random bits. Keys sort by their generation.
--
-- Two things have to hold, also when the database is not the one it was (a failover that lost its last transactions, a
-- restore to a point in time) and when its clock has stepped:
--
-- 1. A key that an earlier holder has is never given out again: the random bits.
-- 2. Of two claims of one job the later has the higher generation, so that handlers can fence their own writes by it. A
--    claim takes its key after it has locked its rows, and the sequence only rises: that orders all claims of one
--    database. A sequence that was restored is as old as the log that arrived. So generations are microseconds: a claim
--    that finds the sequence more than a second behind the clock moves it up to the clock, past everything that the lost
--    claims of a second ago and before can have had. A clock that steps back moves nothing.

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
    -- One at a time, and a second look under the lock: so nobody moves it back. Who asks for a number meanwhile gets a
    -- lower or a higher one than what is written here, never the same.
    if pg_try_advisory_xact_lock(hashtextextended('sluice.generation.' || current_schema(), 0)) then
      if nextval('lease_generation') < v_micros - c_behind then
        perform setval('lease_generation', v_micros);
      end if;
    else
      perform pg_sleep(0.001); -- not for long: its holder may be in a transaction that stays open
    end if;
  end loop;
  return (lpad(to_hex(v_generation), 16, '0') || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid;
end $$;

create or replace function generation_of(lease_key uuid) returns bigint
language sql immutable
return ('x' || left(replace(lease_key::text, '-', ''), 16))::bit(64)::bigint;
