-- audit: who changed what, with the state before and after. The function that makes a change also writes its entry, so
-- neither can be there without the other.

create or replace function write_audit(p_actor text, p_action text, p_target text, p_before jsonb, p_after jsonb)
returns void
language sql
set search_path from current
as $$
  insert into audit (actor, action, target, before, after) values (p_actor, p_action, p_target, p_before, p_after)
$$;

-- Newest first. `p_before` is the last id of the previous page.
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
