// Separate connections for tests about transactions: one that stays open, and others that wait for it.
import type pg from "pg";

/** Runs `work` on its own connection, in a transaction that is rolled back if it is still open at the end. */
export async function inSession<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    return await work(client);
  } finally {
    await client.query("rollback");
    await client.query("discard all");
    client.release();
  }
}

/** Waits until this many connections to the database wait for a lock. */
export async function untilWaiting(pool: pg.Pool, sessions = 1): Promise<void> {
  await until(
    pool,
    `
    select count(*) >= ${sessions} as reached
    from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`,
  );
}

/** Waits until a query returns true in its column `reached`. */
export async function until(pool: pg.Pool, text: string, withinMs = 10_000): Promise<void> {
  const giveUpAt = Date.now() + withinMs;
  while (Date.now() < giveUpAt) {
    const { rows } = await pool.query<{ reached: boolean }>(text);
    if (rows[0]?.reached) return;
  }
  throw new Error(`not so within ${withinMs} ms: ${text}`);
}

/** The SQLSTATE of a failed query, or "none" if it succeeds. */
export async function sqlState(query: Promise<unknown>): Promise<string> {
  return query.then(
    () => "none",
    (error: { code?: string }) => error.code ?? String(error),
  );
}
