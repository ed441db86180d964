-- audit: who did what to the place, with what was before and after. Written by the statement that does it, so that
-- there is neither one without the other.

create or replace function write_audit(p_actor text, p_action text, p_target text, p_before jsonb, p_after jsonb)
returns void
language sql
set search_path from current
as $$
  insert into audit (actor, action, target, before, after) values (p_actor, p_action, p_target, p_before, p_after)
$$;

-- Newest first; `p_before` is the last id of the page before.
create or replace function list_audit(p_before bigint, p_limit int) returns setof audit
language sql stable
security definer
set search_path from current
as $$
  select *
  from audit
  where id < coalesce(p_before, 9223372036854775807)
  order by id desc
  limit p_limit
$$;

create or replace function pause_as(p_actor text, p_kind text, p_name text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
declare
  v_changed boolean := pause(p_kind, p_name);
begin
  perform write_audit(p_actor, 'pause', p_kind || ' ' || p_name,
                      jsonb_build_object('paused', not v_changed), jsonb_build_object('paused', true));
  return v_changed;
end $$;

create or replace function resume_as(p_actor text, p_kind text, p_name text) returns boolean
language plpgsql
security definer
set search_path from current
as $$
declare
  v_changed boolean := resume(p_kind, p_name);
begin
  perform write_audit(p_actor, 'resume', p_kind || ' ' || p_name,
                      jsonb_build_object('paused', v_changed), jsonb_build_object('paused', false));
  return v_changed;
end $$;
