-- audit: who changed what, with the state before and after. The function that makes a change also writes its entry, so
-- neither can be there without the other.

create or replace function write_audit(p_actor text, p_action text, p_target text, p_before jsonb, p_after jsonb)
returns void
language sql
set search_path from current
as $$
  insert into audit (actor, action, target, before, after) values (p_actor, p_action, p_target, p_before, p_after)
$$;
