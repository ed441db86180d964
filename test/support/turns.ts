// Compares what the dispatcher knows of keys with the rows that hold turns, in one statement and so in one snapshot.
import type pg from "pg";

/**
 * A turn is held by a row of a claimable lane, by a lease, by a dead job that blocks, by a job that has got it ahead, or it is on
 * its way back. A run is one turn, however many jobs it has. A share's turns are as many as its jobs. The dispatcher counts a turn in the key's state or in a grant. In a row of turns that came back an ordered key
 * counts once, however often it is named, and a negative place is no turn: it only has the dispatcher look at the key.
 */
const wrongTurns = `
  with held as (
    select key from sluice.ready where lane > 0 and key is not null and place > 0 -- a time-out has place 0
    union all select key from sluice.scheduled where lane > 0 and key is not null and place > 0
    union all select key from sluice.blocked where place is not null
    union all select run.key
      from sluice.lease join sluice.lane using (lane)
      cross join lateral (select distinct key from unnest(keys) as key where key is not null) as run
      where lane.kind = 'ordered'
    union all select entry.key
      from sluice.lease join sluice.lane using (lane) cross join lateral unnest(keys) as entry(key)
      where lane.kind = 'fair' and entry.key is not null
    union all select key from sluice.closed where key is not null
    union all select entry.key
      from sluice.grant_ahead join sluice.turn_grant using (id) cross join lateral unnest(keys, places) as entry(key, place)
      where place > after
  ),
  returned as ( -- first the keys, then the places
    select returned[n] as key
    from sluice.ready join sluice.lane using (lane) cross join lateral generate_series(1, cardinality(returned) / 2) as n
    where lane.kind = 'returns' and ready.place is null and returned[cardinality(returned) / 2 + n] >= 0
    union all select ended.key -- the place names a grant that has ended, and keys that are apart
    from sluice.ready join sluice.turn_grant on turn_grant.id = ready.place and ready.returned is not null
    cross join lateral unnest(keys) as ended(key) where ended.key <> all(returned)
  ),
  ordered as (
    select distinct sluice.key_of_job(lane.queue, job.partition_key, null) as key
    from sluice.job join sluice.lane using (lane) where job.partition_key is not null
  ),
  counted as (
    select key, count(*)::int as held
    from (
      select key from held
      union all select key from returned where key not in (select key from ordered)
      union all (select key from returned intersect select key from ordered)
    ) as turns
    group by key
  ),
  known as (
    select key, sum(turns)::int as turns
    from (
      (select distinct on (key) key, turns from sluice.key_state order by key, version desc)
      union all select unnest(keys), 1 from sluice.turn_grant
    ) as counts
    group by key
  )
  select key::text, coalesce(turns, 0) as known, coalesce(held, 0) as held,
         key in (select key from ordered) as is_ordered
  from known full join counted using (key)
  where coalesce(turns, 0) <> coalesce(held, 0)
     or (coalesce(turns, 0) not in (0, 1) and key in (select key from ordered))`;

/** Jobs that are in two tables, or twice in one, or in none. */
const wrongPlaces = `
  with places as (
    select id from sluice.ready where returned is null and place is distinct from 0
    union all select id from sluice.scheduled where place is null or place > 0
    union all select id from sluice.blocked
    union all select unnest(ids) from sluice.lease
    union all select unnest(ids) from sluice.done
    union all select id from sluice.closed
  ),
  counted as (select id, count(*)::int as places from places group by id)
  select id, coalesce(places, 0) as places
  from sluice.job full join counted using (id)
  where job.id is null or places is distinct from 1`;

/** Both in one snapshot. Nothing is wrong if the list is empty. */
export async function wrongKeys(pool: pg.Pool): Promise<object[]> {
  const { rows } = await pool.query(`
    select (select coalesce(json_agg(wrong), '[]') from (${wrongTurns}) as wrong) as turns,
           (select coalesce(json_agg(wrong), '[]') from (${wrongPlaces}) as wrong) as places`);
  return [...rows[0].turns, ...rows[0].places];
}
