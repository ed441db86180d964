-- spans: in which times jobs of a lane were enqueued. A job's id has its time of creation, so a list that wants the jobs of
-- some lanes only reads the ids within their spans. The fold of the ledger notes them, so no job pays for it.

-- Adds a span to each of these lanes. It begins with the first entry of the ledger that the fold has read, and ends now: a
-- transaction makes its ids after it began and before it commits. The last span of a lane goes on if there are less than two
-- minutes between. One fold runs at a time (fold_ledger).
create or replace function add_spans(p_spans lane_span[]) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  insert into lane_span select 0, clock_timestamp(), clock_timestamp()
  where not exists (select from lane_span where lane = 0);
  with last as materialized (
    select added.lane, added.since, added.until, known.since as known_since
    from unnest(p_spans) as added
    left join lateral (
      select since, until from lane_span where lane_span.lane = added.lane order by since desc limit 1
    ) as known on known.until >= added.since - interval '2 minutes'
  ),
  longer as (
    update lane_span set until = greatest(lane_span.until, last.until)
    from last where lane_span.lane = last.lane and lane_span.since = last.known_since
  )
  insert into lane_span (lane, since, until)
  select lane, since, until from last where known_since is null
  on conflict (lane, since) do update set until = greatest(lane_span.until, excluded.until);
end $$;

-- Where jobs of these lanes may be: ids from `low` on and below `high`, newest first. Spans of different lanes overlap. What
-- lies before the first note, and what is not folded yet, is one span for all. Ten seconds are for a clock that was set back.
create or replace function id_spans(p_lanes int[], p_after uuid, p_before uuid) returns table (low uuid, high uuid)
language sql stable
set search_path from current
as $$
  select greatest(low, p_after), least(high, p_before)
  from (
    select id_at(since - interval '10 s') as low, id_at(until) as high from lane_span where lane = any(p_lanes)
    union all
    select id_at(min(at) - interval '10 s'), null from ledger where enqueued > 0 and lane = any(p_lanes) having count(*) > 0
    union all
    select p_after, (select id_at(since) from lane_span where lane = 0)
  ) as span
  where low < p_before and coalesce(high, p_before) > p_after
  order by high desc nulls first
$$;
