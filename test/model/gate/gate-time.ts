// Moves time forward while other actors run, by the engine's own rules: it waits for no lock, and a row of `scheduled`
// gets its time from the clock after the statement has locked it.
import type pg from "pg";

/** Makes jobs due now that are due later than in `atLeast`. */
export async function bringForward(pool: pg.Pool, atLeast = "0 seconds"): Promise<void> {
  await pool.query(
    `update sluice.scheduled set run_at = clock_timestamp()
     where ctid = any(array(
       select ctid from sluice.scheduled where run_at > now() + $1::interval for update skip locked))`,
    [atLeast],
  );
}

/** Makes these leases run out now, and the given share of all others. */
export async function expireLeases(
  pool: pg.Pool,
  { keys = [], share }: { keys?: readonly string[]; share: number },
): Promise<void> {
  await pool.query(
    `update sluice.lease set deadline = clock_timestamp() - interval '1 ms'
     where ctid = any(array(
       select ctid from sluice.lease
       where key = any($1::uuid[]) or random() < $2::float8
       for update skip locked))`,
    [keys, share],
  );
}
