-- pause, resume: claims do not choose the lanes of a paused queue or type. Other lanes are claimed at the same cost as
-- before. Both answer whether that changed anything, and both write the audit in any case.
--
-- Two that pause the same thing at once: the primary key of `pause` lets one insert its row, the other one finds it.

create or replace function pause(p_actor text, p_kind text, p_name text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
declare
  v_changed boolean;
begin
  insert into pause (kind, name) values (p_kind, p_name) on conflict do nothing;
  v_changed := found;
  perform write_audit(p_actor, 'pause', p_kind || ' ' || p_name,
                      jsonb_build_object('paused', not v_changed), jsonb_build_object('paused', true));
  return v_changed;
end $$;

create or replace function resume(p_actor text, p_kind text, p_name text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
declare
  v_changed boolean;
begin
  delete from pause where kind = p_kind and name = p_name;
  v_changed := found;
  perform write_audit(p_actor, 'resume', p_kind || ' ' || p_name,
                      jsonb_build_object('paused', v_changed), jsonb_build_object('paused', false));
  return v_changed;
end $$;

-- True for a queue that has or had jobs, or is paused.
create or replace function knows_queue(p_name text) returns boolean
language sql stable
security definer
set search_path from current
as $$
  select exists (select from lane where queue = p_name)
      or exists (select from pause where kind = 'queue' and name = p_name)
$$;
