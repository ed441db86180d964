// Moves jobs to the past or the future. A job's id contains its time of creation, so the job gets a new id.
import { only, type Verbs } from "./verbs.ts";

const tablesById = [
  "job",
  "ready",
  "scheduled",
  "closed",
  "output",
  "failed_attempt",
  "job_tag",
  "expiry",
  "idempotency",
];

/** Gives a job an id from some days ago, and moves its finished, closed and failed times too. Returns the new id. */
export async function makeOlder(queue: Verbs, id: string, days: number): Promise<string> {
  const [row] = await queue.query<{ id: string }>(
    `select (left(sluice.id_at(now() - make_interval(days => $2))::text, 13) || right($1::text, 23))::uuid as id`,
    [id, days],
  );
  const older = row?.id ?? "";
  for (const table of tablesById)
    await queue.query(`update sluice.${table} set id = $2 where id = $1`, [id, older]);
  await queue.query("update sluice.lease set ids = array[$2::uuid] where ids = array[$1::uuid]", [id, older]);
  await queue.query(
    `update sluice.done set ids = array[$2::uuid], lo_id = $2, hi_id = $2, finished_at = now() - make_interval(days => $3)
     where ids = array[$1::uuid]`,
    [id, older, days],
  );
  await queue.query("update sluice.closed set closed_at = now() - make_interval(days => $2) where id = $1", [
    older,
    days,
  ]);
  return older;
}

/** Makes the partitions of a past day, as if they had been made in time. Returns the day. */
export async function addPastDay(queue: Verbs, daysAgo: number): Promise<string> {
  const { day, name, from, upto } = only(
    await queue.query<{ day: string; name: string; from: string; upto: string }>(
      `select day::text, to_char(day, 'YYYYMMDD') as name, sluice.start_of_day(day) as "from",
              sluice.start_of_day(day + 1) as upto
       from (select (now() at time zone 'utc')::date - $1::int as day) as days`,
      [daysAgo],
    ),
  );
  for (const table of ["job", "done"])
    await queue.query(
      `create table sluice.${table}_${name} partition of sluice.${table} for values from ('${from}') to ('${upto}')`,
    );
  return day;
}
