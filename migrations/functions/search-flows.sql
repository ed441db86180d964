-- search flows: pages of flows, newest first, of one status or of all.
--
-- A flow's status is made of counts that change all the time, so no index has it. The search looks at a bounded number of flows and
-- says how far it has come, as that of jobs does.

-- { flows, searched_to }. p_before: the `searched_to` of the page before. Null: the search came to the end.
create or replace function search_flows(p_status text, p_before uuid, p_limit int) returns jsonb
language plpgsql stable
security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
  c_looked constant int := 2000;
  v_looked int := case when p_status is null then p_limit else c_looked end;
  v_last   uuid; -- of a search that has not come to the end
  v_found  uuid[];
begin
  with looked as materialized (
    select * from flow where p_before is null or id < p_before order by id desc limit v_looked
  ),
  later as materialized ( -- of all of them at once: a look-up for each would cost more
    select flow, sum(coalesce(blocked, 0) + coalesce(pending, 0) + coalesce(processing, 0)) as open,
           sum(coalesce(dead, 0) + coalesce(discarded, 0)) as bad, coalesce(sum(cancelled), 0) as cancelled
    from flow_ledger
    where flow >= (select id from looked order by id limit 1) and flow <= (select id from looked order by id desc limit 1)
    group by flow
  ),
  judged as (
    select id, flow_status(looked.blocked + looked.pending + looked.processing + coalesce(later.open, 0),
                           looked.dead + looked.discarded + coalesce(later.bad, 0),
                           looked.cancelled + coalesce(later.cancelled, 0), cancelled_at) as status
    from looked left join later on later.flow = looked.id
  )
  select array(select id from judged where p_status is null or status = p_status order by id desc limit p_limit),
         (select id from looked where (select count(*) from looked) = v_looked order by id limit 1)
  into v_found, v_last;
  return jsonb_build_object(
    'flows', (select coalesce(jsonb_agg(find_flow(id) order by place), '[]') from unnest(v_found) with ordinality as page(id, place)),
    'searched_to', case when cardinality(v_found) = p_limit then v_found[p_limit] else v_last end);
end $$;
