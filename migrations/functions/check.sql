-- What a producer may ask for: the limits of a payload and of a new job's options, for the HTTP API and for SQL alike.
-- Functions with a body of one expression are inlined into their callers, and have to be defined before them.

-- Not a part of fault_of: Postgres inlines no function with a subquery, and without that an enqueue takes four times as long.
create or replace function has_bad_tag(tags text[]) returns boolean
language sql immutable
return array_ndims(tags) > 1
  or exists (select from unnest(tags) as tag where tag is null or length(tag) not between 1 and 63);

-- The size of a payload as Postgres stores it. A compressed one is measured as text instead. Inlined.
create or replace function payload_bytes(payload jsonb) returns int
language sql stable
return case when pg_column_compression(payload) is null then pg_column_size(payload)
            else octet_length(payload::text) end;

-- The size of a payload's JSON text without the spaces that Postgres writes after each colon and comma. They are at most a
-- third of the text, so they are only subtracted where that can decide between allowed and refused.
create or replace function json_bytes(payload jsonb) returns int
language plpgsql immutable as $$
declare
  v_text  text := payload::text;
  v_bytes int := octet_length(v_text);
  v_bare  text; -- the text without its strings: all spaces in it were added by Postgres
begin
  if v_bytes <= 65536 or v_bytes > 98400 then
    return v_bytes;
  end if;
  v_bare := regexp_replace(v_text, '"(?:[^"\\]|\\.)*"', '', 'g');
  return v_bytes - (length(v_bare) - length(replace(v_bare, ' ', '')));
end $$;

-- A payload has at most 64 KiB of JSON text. The text is in UTF-8, without spaces, and numbers are written out as Postgres
-- does it: 1e300 is a one and 300 zeros. A claim sends this text to a worker. src/edge/http/codec/payload.ts measures the
-- same. Most payloads are judged by their stored size, without being written out. The text of a small one is at most 25
-- times that size (1e255 is stored in 12 bytes), that of a very large one at least a sixth of it ("0," is stored in 12
-- bytes). Only numbers that no double holds can be longer.
create or replace function payload_fault_of(payload jsonb) returns text
language sql stable -- as pg_column_size is: declared immutable it could not be inlined
return case
  when jsonb_typeof(payload) <> 'object' then 'payload: must be a JSON object'
  when payload_bytes(payload) > 2600
    and (payload_bytes(payload) > 393300 or json_bytes(payload) > 65536) then 'payload: must not be larger than 64 KiB'
end;

-- What is wrong with a debounce or a throttle, and with what they are given together with; null: nothing.
create or replace function debounce_fault_of(job new_job) returns text
language plpgsql immutable as $$
declare
  v_name   text := case when job.debounce is not null then 'debounce' else 'throttle' end;
  v_option jsonb := coalesce(job.debounce, job.throttle);
  v_fault  text;
begin
  v_fault := case
    when job.debounce is not null and job.throttle is not null then 'throttle: must not be given together with debounce'
    when job.after is not null then format('after: must not be given together with %s', v_name)
    when job.debounce is not null and job.delay_seconds > 0 then 'delay_seconds: must not be given together with debounce'
    when job.debounce is not null and job.scheduled_at is not null then 'scheduled_at: must not be given together with debounce'
    when jsonb_typeof(v_option) <> 'object' then format('%s: must be an object', v_name)
    when jsonb_typeof(v_option -> 'key') is distinct from 'string' or length(v_option ->> 'key') not between 1 and 255
      then format('%s.key: must be a text of 1 to 255 characters', v_name)
    when jsonb_typeof(v_option -> 'seconds') is distinct from 'number'
      or (v_option -> 'seconds')::float8 not between 0 and 3155760000
      then format('%s.seconds: must be between 0 and 100 years', v_name)
    when v_name = 'throttle' and (v_option -> 'seconds')::float8 = 0 then 'throttle.seconds: must be above 0'
    else (select format('%s.%s: is not a field of it', v_name, field) from jsonb_object_keys(v_option) as field
          where field <> all(case v_name when 'throttle' then array['key', 'seconds']
                             else array['key', 'seconds', 'mode', 'max_wait_seconds', 'max_items'] end)
          limit 1)
  end;
  if v_fault is not null or v_name = 'throttle' then
    return v_fault;
  end if;
  v_option := jsonb_strip_nulls(v_option);
  return case
    when v_option ->> 'mode' is null or v_option ->> 'mode' not in ('first', 'last', 'merge')
      then 'debounce.mode: must be "first", "last" or "merge"'
    when jsonb_typeof(v_option -> 'max_wait_seconds') <> 'number'
      or (v_option ->> 'max_wait_seconds')::float8 not between (v_option -> 'seconds')::float8 and 3155760000
      then 'debounce.max_wait_seconds: must be between debounce.seconds and 100 years'
    when v_option ? 'max_items' and v_option ->> 'mode' <> 'merge' then 'debounce.max_items: is only for the mode "merge"'
    when jsonb_typeof(v_option -> 'max_items') <> 'number' or (v_option ->> 'max_items')::numeric not between 1 and 1000
      or (v_option ->> 'max_items')::numeric % 1 <> 0
      then 'debounce.max_items: must be a whole number between 1 and 1,000'
  end;
end $$;

-- What is wrong with a new job's options; null: nothing. The limits are those of src/core/job-options.ts. lane_of checks
-- the names. A delay and a time have the same limit of 100 years, since they are two ways to say the same. So every time
-- that follows from them (a default expiry) has a year of four digits, which all clients can read.
create or replace function fault_of(job new_job) returns text
language sql stable
return case
  when job.priority not between 0 and 9 then 'priority: must be between 0 and 9'
  when job.max_attempts not between 1 and 20 then 'max_attempts: must be between 1 and 20'
  when job.delay_seconds is not null and job.scheduled_at is not null
    then 'scheduled_at: must not be given together with delay_seconds'
  when job.delay_seconds not between 0 and 3155760000 then 'delay_seconds: must be between 0 and 100 years'
  when job.scheduled_at not between timestamptz '1970-01-01 00:00+00' and now() + interval '876600 hours'
    then 'scheduled_at: must be after 1970 and within 100 years'
  when job.expires_at <= job.scheduled_at then 'expires_at: must be after scheduled_at'
  when job.expires_at >= timestamptz '10000-01-01 00:00+00' then 'expires_at: must be before the year 10000'
  when length(job.idempotency_key) not between 1 and 255 then 'idempotency_key: must have 1 to 255 characters'
  when length(job.partition_key) not between 1 and 255 then 'partition_key: must have 1 to 255 characters'
  when length(job.fair_key) not between 1 and 255 then 'fair_key: must have 1 to 255 characters'
  when job.partition_key is not null and job.fair_key is not null
    then 'fair_key: must not be given together with partition_key'
  when cardinality(job.tags) > 20 then 'tags: must be at most 20'
  when job.on_blocker_dead not in ('die', 'run') then 'on_blocker_dead: must be "die" or "run"'
  when job.tags is not null and has_bad_tag(job.tags) then 'tags: must be a flat list of texts, each of 1 to 63 characters'
  when job.debounce is not null or job.throttle is not null then debounce_fault_of(job)
end;

-- A trace context by the rules of the W3C; null if it does not follow them. A header of a later version is kept in the form
-- of version 00, with the parts that all versions have.
create or replace function traceparent_of(header text) returns text
language sql immutable
return case
  when header !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-|$)' or header ~ '^ff' then null
  when substr(header, 4, 32) ~ '^0+$' or substr(header, 37, 16) ~ '^0+$' then null
  when header !~ '^00' then format('00-%s-0%s', substr(header, 4, 49), get_bit(decode(substr(header, 54, 2), 'hex'), 0))
  when length(header) = 55 then header
end;

-- Refuses a batch if one of its jobs has a fault. Otherwise says which options some of its jobs have, so that the caller
-- can leave out the statements that no job needs.
create or replace function check_jobs(
  p_jobs new_job[],
  out have_key boolean, out have_time boolean, out have_expiry boolean, out have_tags boolean,
  out have_turns boolean, -- a partition key or a fair key
  out have_after boolean,
  out have_debounce boolean, -- or a throttle
  out are_of_one_lane boolean
)
language plpgsql as $$
declare
  v_first new_job := p_jobs[1];
  v_fault text;
begin
  select (array_agg(fault) filter (where fault is not null))[1],
         bool_or((job).idempotency_key is not null),
         bool_or((job).delay_seconds > 0 or (job).scheduled_at is not null or (job).debounce is not null),
         bool_or((job).expires_at is not null),
         bool_or(cardinality((job).tags) > 0),
         bool_or((job).partition_key is not null or (job).fair_key is not null),
         bool_or((job).after is not null),
         bool_or((job).debounce is not null or (job).throttle is not null),
         bool_and((job).type = v_first.type and (job).queue is not distinct from v_first.queue
                  and (job).priority is not distinct from v_first.priority
                  and kind_of((job).partition_key, (job).fair_key) = kind_of(v_first.partition_key, v_first.fair_key))
  into v_fault, have_key, have_time, have_expiry, have_tags, have_turns, have_after, have_debounce, are_of_one_lane
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
  when job.type like 'sluice.%' then 'type: must not begin with "sluice.", which is reserved'
  when job.expires_at <= now() then 'expires_at: must be in the future'
end;

create or replace function refuse(p_fault text) returns void
language plpgsql as $$
begin
  raise exception using errcode = 'invalid_parameter_value', message = p_fault;
end $$;

-- Whether insert_uniform can store the job: whether it has none of the options that take the long way.
create or replace function is_plain(job new_job) returns boolean
language sql immutable
return row(job.delay_seconds, job.scheduled_at, job.expires_at, job.idempotency_key, job.tags, job.after,
           job.on_blocker_dead, job.debounce, job.throttle) is null;
