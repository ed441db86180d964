-- Pausing: the lanes of a paused queue or type are not chosen by a claim, and cost the others nothing.

create or replace function pause(p_kind text, p_name text) returns boolean
language sql
set search_path from current
as $$
  with paused as (
    insert into pause (kind, name) values (p_kind, p_name) on conflict do nothing returning 1
  )
  select exists (select from paused)
$$;

create or replace function resume(p_kind text, p_name text) returns boolean
language sql
set search_path from current
as $$
  with resumed as (
    delete from pause where kind = p_kind and name = p_name returning 1
  )
  select exists (select from resumed)
$$;

-- Has it, or had it, jobs; or is it paused?
create or replace function knows_queue(p_name text) returns boolean
language sql stable
security definer
set search_path from current
as $$
  select exists (select from lane where queue = p_name)
      or exists (select from pause where kind = 'queue' and name = p_name)
$$;
