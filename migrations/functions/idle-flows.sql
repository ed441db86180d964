-- For snapshot(), which calls it with its own planner settings: the running flows that made no progress for the longest time, at
-- most 100. A reap round notes when a flow changed (fold_flows). The index flow_running has them in order, so this reads as many
-- rows as it answers. While the database is pinned it also steps over the old versions of rows, one for each flow and fold: 20,000 of
-- them cost 2 ms, and 240,000 (1,000 flows that all move in each of 240 minutes) 22 ms. A day of that would be 0.13 s for each snapshot.
create or replace function idle_flows() returns json
language sql stable
set search_path from current
as $$
  select coalesce(json_agg(idle order by since, flow_id), '[]')
  from (
    select id as flow_id, changed_at as since from flow
    where blocked + pending + processing > 0 -- as flow_running says
    order by changed_at, id limit 100
  ) as idle
$$;
