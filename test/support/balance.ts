// Compares the books with the tables, in one statement and so in one snapshot. A job that waits for its key stands under the
// negative number of its lane.
import { wrongGroups } from "./dead-groups.ts";
import type { Verbs } from "./verbs.ts";

const unbalanced = `
  with rows_of as (
    select lane, 'enqueued' as entry, count(*) as jobs from sluice.job group by lane
    union all select abs(lane), 'pending', count(*) from sluice.ready
      where returned is null and place is distinct from 0 group by abs(lane)
    union all select abs(lane), entry, count(*)
      from sluice.scheduled cross join unnest(array['pending', 'scheduled']) as entry
      where place is null or place > 0 group by abs(lane), entry -- a time-out has place 0, a slot -1
    union all select abs(lane), 'blocked', count(*) from sluice.blocked group by abs(lane)
    union all select lane, 'leased', sum(cardinality(ids)) from sluice.lease group by lane
    union all select lane, 'completed', sum(cardinality(ids)) from sluice.done group by lane
    union all select lane, status, count(*) from sluice.closed group by lane, status
  ),
  counted as (
    select queue, type, priority, entry, sum(jobs) as jobs
    from rows_of join sluice.lane using (lane) group by queue, type, priority, entry
  ),
  booked as (
    select queue, type, priority, entry.name as entry, entry.jobs,
           enqueued - completed - dead - discarded - cancelled - pending - leased - blocked as difference
    from sluice.books
    cross join lateral (values ('enqueued', enqueued), ('pending', pending), ('scheduled', scheduled), ('leased', leased), ('blocked', blocked),
      ('completed', completed), ('dead', dead), ('discarded', discarded), ('cancelled', cancelled)) as entry(name, jobs)
  )
  select queue, type, priority, entry, booked.jobs::int as booked, coalesce(counted.jobs, 0)::int as counted,
         difference::int
  from booked full join counted using (queue, type, priority, entry)
  where booked.jobs is distinct from coalesce(counted.jobs, 0) or difference <> 0`;

const ended = ["enqueued", "completed", "dead", "discarded", "cancelled"];

/** Returns every count that differs from its rows, also of groups of dead letters. There is none when the books balance. Pruned jobs are in the books alone. */
export async function differences(queue: Pick<Verbs, "query">, { isPruned = false } = {}): Promise<object[]> {
  const found = await queue.query<{ entry: string; booked: number; counted: number; difference: number }>(
    unbalanced,
  );
  const wrong = found.filter(
    ({ entry, booked, counted, difference }) =>
      !isPruned || difference !== 0 || booked < counted || !ended.includes(entry),
  );
  return [...wrong, ...(await wrongGroups(queue))];
}
