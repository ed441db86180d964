// Compares the groups of dead letters with the rows of `closed`, in one statement and so in one snapshot.
import type { Verbs } from "./verbs.ts";

const wrong = `
  with counted as (
    select lane, reason, fingerprint, count(*) as dead from sluice.closed
    where status = 'dead' and fingerprint is not null group by 1, 2, 3
  ),
  booked as (
    select lane, reason, fingerprint, sum(dead) as dead from sluice.dead_counts group by 1, 2, 3
  )
  select lane, reason, fingerprint, coalesce(booked.dead, 0)::int as booked, coalesce(counted.dead, 0)::int as counted
  from booked full join counted using (lane, reason, fingerprint)
  where coalesce(booked.dead, 0) <> coalesce(counted.dead, 0)`;

/** Returns every group whose count differs from its rows. */
export function wrongGroups(queue: Pick<Verbs, "query">): Promise<object[]> {
  return queue.query(wrong);
}
