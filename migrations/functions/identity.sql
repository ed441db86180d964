-- Ids are uuid v7: they sort by time, so a job's day and its partition can be read off its id.

do $$
begin
  if current_setting('server_version_num')::int >= 180000 then
    create or replace function new_id() returns uuid
    language sql volatile parallel safe
    return uuidv7();

    create or replace function time_of_id(id uuid) returns timestamptz
    language sql immutable parallel safe
    return uuid_extract_timestamp(id);
  else
    -- 48 bits of milliseconds, version 7, 12 bits of the millisecond's fraction, variant, 62 random bits
    create or replace function new_id() returns uuid
    language sql volatile parallel safe
    as $body$
      select encode(
        int8send((micros / 1000 << 16) | (7 << 12) | (micros % 1000 * 4096 / 1000))
        || set_byte(rand, 0, get_byte(rand, 0) & 63 | 128), 'hex')::uuid
      from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as micros,
                   substring(uuid_send(gen_random_uuid()) for 8) as rand) fresh
    $body$;

    create or replace function time_of_id(id uuid) returns timestamptz
    language sql immutable parallel safe
    return to_timestamp((('x' || encode(substring(uuid_send(id) for 6), 'hex'))::bit(48)::bigint)::float8 / 1000);
  end if;
end $$;

-- The ids of one call share a prefix, the stem; the last hex digits are the job's number in the call. So they are in the
-- order of the jobs and next to each other on every version of PostgreSQL, and cost a third of random ones.
create or replace function id_stem(jobs int) returns text
language sql volatile
return left(new_id()::text, 36 - length(to_hex(jobs)));

create or replace function numbered_id(stem text, number bigint) returns uuid
language sql immutable
return (stem || lpad(to_hex(number), 36 - length(stem), '0'))::uuid;

-- The lowest id that a job created at that moment can have.
create or replace function id_at(moment timestamptz) returns uuid
language sql immutable parallel safe
return (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

-- The end of an id's 65-second bucket: its first 32 bits are the bucket.
create or replace function end_of_bucket(id uuid) returns uuid
language sql immutable parallel safe
return (left(id::text, 8) || repeat('f', 24))::uuid;

-- When a job expires: 30 days after its creation, unless its producer chose a time. The interval is in hours, since the
-- length of a day depends on the session's time zone.
create or replace function expiry_of(id uuid, expires_at timestamptz) returns timestamptz
language sql stable parallel safe -- as `+` is: declared immutable it could not be inlined
return coalesce(expires_at, time_of_id(id) + interval '720 hours');
