// Time forced forward while others are at work, within the engine's own rules: nobody is waited for, and what is
// written to `scheduled` takes its time from the clock after the statement has its lock.
import type pg from "pg";

/** What is to run in more than `atLeast` runs now. */
export async function bringForward(pool: pg.Pool, atLeast = "0 seconds"): Promise<void> {
  await pool.query(
    `update sluice.scheduled set run_at = clock_timestamp()
     where ctid = any(array(
       select ctid from sluice.scheduled where run_at > now() + $1::interval for update skip locked))`,
    [atLeast],
  );
}

/** These leases, and of all others the given share, run out now. */
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
