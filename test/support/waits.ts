// Compares what is stored about waits and flows with each other, in one statement and so in one snapshot.
import type pg from "pg";

/** A wait's edges, and those of its events that were not read, are as many as it counts. */
const wrongWaits = `
  with told as (
    select entry.wait, sum(greatest(entry.number, 0)) as ended
    from sluice.ready join sluice.lane using (lane)
    cross join lateral (select cardinality(returned) / 4 as n) as size
    cross join lateral unnest(returned[1 : n], returned[n + 1 : 2 * n]) as entry(wait, number)
    where lane.kind = 'ends' and returned is not null
    group by entry.wait
  ),
  edges as (select wait, count(*) as edges from sluice.edge group by wait)
  select blocked.id, blocked.wait, togo, coalesce(edges, 0)::int as edges, coalesce(ended, 0)::int as told
  from sluice.blocked left join edges using (wait) left join told using (wait)
  where togo <> coalesce(edges, 0) + coalesce(ended, 0)`;

/** A flow's counts are those of its jobs. */
const wrongFlows = `
  with state as (
    select id, 'pending' as status from sluice.ready where returned is null
    union all select id, 'pending' from sluice.scheduled
    union all select id, 'blocked' from sluice.blocked
    union all select unnest(ids), 'processing' from sluice.lease
    union all select unnest(ids), 'completed' from sluice.done
    union all select id, status from sluice.closed
  ),
  counted as (
    select flow, status, count(*)::int as jobs from sluice.job join state using (id) where flow is not null group by flow, status
  ),
  changed as (
    select flow, sum(blocked) as blocked, sum(pending) as pending, sum(processing) as processing,
           sum(completed) as completed, sum(dead) as dead, sum(discarded) as discarded, sum(cancelled) as cancelled
    from sluice.flow_ledger group by flow
  ),
  booked as (
    select flow.id as flow, entry.status, entry.jobs::int
    from sluice.flow left join changed on changed.flow = flow.id
    cross join lateral (values
      ('blocked', flow.blocked + coalesce(changed.blocked, 0)), ('pending', flow.pending + coalesce(changed.pending, 0)),
      ('processing', flow.processing + coalesce(changed.processing, 0)),
      ('completed', flow.completed + coalesce(changed.completed, 0)), ('dead', flow.dead + coalesce(changed.dead, 0)),
      ('discarded', flow.discarded + coalesce(changed.discarded, 0)),
      ('cancelled', flow.cancelled + coalesce(changed.cancelled, 0))) as entry(status, jobs)
  )
  select flow, status, booked.jobs as booked, coalesce(counted.jobs, 0) as counted
  from booked full join counted using (flow, status)
  where booked.jobs is distinct from coalesce(counted.jobs, 0)`;

/** A flow goes on counting its jobs that were pruned. */
const isEnd = (status: string) => ["completed", "dead", "discarded", "cancelled"].includes(status);

export async function wrongLinks(pool: pg.Pool, { isPruned = false } = {}): Promise<object[]> {
  const { rows } = await pool.query(`
    select (select coalesce(json_agg(wrong), '[]') from (${wrongWaits}) as wrong) as waits,
           (select coalesce(json_agg(wrong), '[]') from (${wrongFlows}) as wrong) as flows`);
  const flows: { status: string; booked: number; counted: number }[] = rows[0].flows;
  const isAllowed = ({ status, booked, counted }: (typeof flows)[number]) =>
    isPruned && isEnd(status) && booked > counted;
  return [...rows[0].waits, ...flows.filter((flow) => !isAllowed(flow))];
}
