-- What a producer may ask for: the limits of a payload and of a new job's options, the same for every way in. Functions
-- with a body of one expression are inlined into the statements that call them, and have to stand before their callers.

-- Apart from fault_of, which is only inlined as long as it has no subquery in it: three quarters of an enqueue's time.
create or replace function has_bad_tag(tags text[]) returns boolean
language sql immutable
return array_ndims(tags) > 1
  or exists (select from unnest(tags) as tag where tag is null or length(tag) not between 1 and 63);

-- Its size in Postgres's own form, without writing it out where that can be avoided. Inlined.
create or replace function payload_bytes(payload jsonb) returns int
language sql stable
return case when pg_column_compression(payload) is null then pg_column_size(payload)
            else octet_length(payload::text) end;

-- The size of a payload's JSON text without spaces: Postgres writes one after each colon and comma. Where it cannot change
-- the verdict they are not taken off: a text that is within the limit with them is so without, and they are at most a
-- third of it.
create or replace function json_bytes(payload jsonb) returns int
language plpgsql immutable as $$
declare
  v_text  text := payload::text;
  v_bytes int := octet_length(v_text);
  v_bare  text; -- without its strings, so the spaces in it are those that Postgres added
begin
  if v_bytes <= 65536 or v_bytes > 98400 then
    return v_bytes;
  end if;
  v_bare := regexp_replace(v_text, '"(?:[^"\\]|\\.)*"', '', 'g');
  return v_bytes - (length(v_bare) - length(replace(v_bare, ' ', '')));
end $$;

-- A payload has at most 64 KiB of JSON text, by every way. The text is in UTF-8, without spaces, and as Postgres keeps
-- it: numbers are written out, 1e300 is a one and 300 zeros. That is what a claim sends to a worker, so a payload is never
-- larger there than it was allowed to be; and src/edge/http/payload.ts measures the same. Small payloads are not written
-- out to be judged: the text takes at most 25 times what Postgres's own form takes (1e255 is 12 bytes there). Nor are
-- very large ones: it takes at least a sixth ("0," is 12 bytes). Only numbers that no double holds can pass as small.
create or replace function payload_fault_of(payload jsonb) returns text
language sql stable -- as pg_column_size is: declared immutable it could not be inlined
return case
  when jsonb_typeof(payload) <> 'object' then 'payload: not a JSON object'
  when payload_bytes(payload) > 2600
    and (payload_bytes(payload) > 393300 or json_bytes(payload) > 65536) then 'payload: larger than 64 KiB'
end;

-- Says what is wrong with a new job's options, or null: the same limits as in the HTTP contract. Names are lane_of's. A
-- delay and a time reach equally far, they are two ways to say the same. Later than in 100 years nothing is due by
-- intent, and so every time that follows from it (a default expiry) has a year of four digits, which all clients can read.
create or replace function fault_of(job new_job) returns text
language sql stable
return case
  when job.priority not between 0 and 9 then 'priority: not between 0 and 9'
  when job.max_attempts not between 1 and 20 then 'max_attempts: not between 1 and 20'
  when job.delay_seconds is not null and job.scheduled_at is not null
    then 'scheduled_at: delay_seconds and scheduled_at exclude each other'
  when job.delay_seconds not between 0 and 3155760000 then 'delay_seconds: not between 0 and 100 years'
  when job.scheduled_at not between timestamptz '1970-01-01 00:00+00' and now() + interval '876600 hours'
    then 'scheduled_at: before 1970 or in more than 100 years'
  when job.expires_at <= job.scheduled_at then 'expires_at: not after scheduled_at'
  when job.expires_at >= timestamptz '10000-01-01 00:00+00' then 'expires_at: after the year 9999'
  when length(job.idempotency_key) not between 1 and 255 then 'idempotency_key: not 1 to 255 characters'
  when length(job.partition_key) not between 1 and 255 then 'partition_key: not 1 to 255 characters'
  when cardinality(job.tags) > 20 then 'tags: more than 20'
  when job.tags is not null and has_bad_tag(job.tags) then 'tags: a flat list, each of 1 to 63 characters'
end;

-- A trace context by the rules of the W3C, or null: what does not follow them counts as absent. Of a later version the
-- parts that all versions have in common are kept, in the form of version 00.
create or replace function traceparent_of(header text) returns text
language sql immutable
return case
  when header !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-|$)' or header ~ '^ff' then null
  when substr(header, 4, 32) ~ '^0+$' or substr(header, 37, 16) ~ '^0+$' then null
  when header !~ '^00' then format('00-%s-0%s', substr(header, 4, 49), get_bit(decode(substr(header, 54, 2), 'hex'), 0))
  when length(header) = 55 then header
end;

-- Refuses a batch with a fault in it. Otherwise says which options its jobs have, so that what none of them needs is
-- left out.
create or replace function check_jobs(
  p_jobs new_job[],
  out have_key boolean, out have_time boolean, out have_expiry boolean, out have_tags boolean,
  out are_of_one_lane boolean
)
language plpgsql as $$
declare
  v_first new_job := p_jobs[1];
  v_fault text;
begin
  select (array_agg(fault) filter (where fault is not null))[1],
         bool_or((job).idempotency_key is not null),
         bool_or((job).delay_seconds > 0 or (job).scheduled_at is not null),
         bool_or((job).expires_at is not null),
         bool_or(cardinality((job).tags) > 0),
         bool_and((job).type = v_first.type and (job).queue is not distinct from v_first.queue
                  and (job).priority is not distinct from v_first.priority)
  into v_fault, have_key, have_time, have_expiry, have_tags, are_of_one_lane
  from (
    select job, coalesce(payload_fault_of(job.payload), fault_of(job)) as fault from unnest(p_jobs) as job
  ) as checked;
  if v_fault is not null then
    perform refuse(v_fault);
  end if;
end $$;

-- What an app may not ask for. The HTTP API refuses the same. The Worker's own function, enqueue_jobs, is granted to no
-- app: through it the canary is enqueued.
create or replace function outside_fault_of(job new_job) returns text
language sql stable
return case
  when job.type like 'sluice.%' then 'type: those that begin with "sluice." are Sluice''s own'
  when job.expires_at <= now() then 'expires_at: not in the future'
end;

create or replace function refuse(p_fault text) returns void
language plpgsql as $$
begin
  raise exception using errcode = 'invalid_parameter_value', message = p_fault;
end $$;

-- Whether insert_uniform can store the job: whether it has none of the options that take the long way.
create or replace function is_plain(job new_job) returns boolean
language sql immutable
return row(job.delay_seconds, job.scheduled_at, job.expires_at, job.idempotency_key, job.tags) is null;
