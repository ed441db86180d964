// Sends jobs through the queue in batches and measures a claim before and after. Meanwhile an old snapshot can pin the
// database, so that Postgres cannot remove dead rows.
import pg from "pg";
import { type Call, measure, measureOften } from "./explain.ts";

/** Opens a transaction with an id and a snapshot, as a report or a dump does. Returns a function that ends it. */
export async function holdSnapshot(url: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin isolation level repeatable read");
  await client.query("select pg_current_xact_id(), count(*) from sluice.ready");
  return async () => {
    await client.query("rollback");
    await client.end();
  };
}

export interface Churn {
  jobs: number;
  batchSize?: number;
  connections?: number;
  /** The share of the claimed jobs that fail and are retried after 0.05 s. */
  retries?: number;
}

const payload = { customer: 4711, address: "someone@example.com", subject: "a subject of a common length" };

/** Enqueues, claims and completes jobs in batches, on several connections at once. */
export async function churn(url: string, options: Churn): Promise<void> {
  const { jobs, batchSize = 100, connections = 2, retries = 0 } = options;
  const rounds = Math.ceil(jobs / batchSize / connections);
  const workOnOne = async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (let round = 0; round < rounds; round++) {
      await enqueueBatch(client, batchSize);
      await settleBatch(client, await claimBatch(client, batchSize), retries);
    }
    await client.end();
  };
  await Promise.all(Array.from({ length: connections }, workOnOne));
}

export const enqueueText = "select * from sluice.enqueue_jobs($1)";
export const claimText = "select sluice.claim('default', array['mail'], $1::int, 600) as claimed";
export const settleText = "select sluice.settle($1, $2, $3)";

export function newJobs(size: number): string {
  const payloads = Array.from({ length: size }, () => payload);
  return JSON.stringify({ type: "mail", payloads, max_attempts: 20 });
}

export async function enqueueBatch(client: pg.ClientBase, size: number): Promise<void> {
  await client.query(enqueueText, [newJobs(size)]);
}

/** Claimed jobs that are not settled, in the order that settle() is fastest with. */
export interface HeldJobs {
  ids: string[];
  keys: string[];
}

/** The parts of the column `claimed` in a claim's answer that are needed here. */
export interface ClaimedRow {
  claimed: { key: string; leases: { jobs: [id: string][] }[] | null };
}

export function heldOf(rows: readonly ClaimedRow[]): HeldJobs {
  const ids = rows.flatMap(({ claimed }) =>
    (claimed.leases ?? []).flatMap((lease) => lease.jobs.map(([id]) => id)),
  );
  return { ids: ids.sort(), keys: ids.map(() => rows[0]?.claimed.key ?? "") };
}

export async function claimBatch(client: pg.ClientBase, size: number): Promise<HeldJobs> {
  return heldOf((await client.query<ClaimedRow>(claimText, [size])).rows);
}

export async function settleBatch(client: pg.ClientBase, jobs: HeldJobs, retries = 0): Promise<void> {
  if (jobs.ids.length > 0) await client.query(settleText, settleValues(jobs, retries));
}

export function settleValues({ ids, keys }: HeldJobs, retries = 0): unknown[] {
  const outcomes = ids.map((_, index) =>
    index < ids.length * retries
      ? { outcome: "retry", message: "busy", seconds: 0.05 }
      : { outcome: "complete" },
  );
  return [ids, keys, retries > 0 ? JSON.stringify(outcomes) : null];
}

/**
 * The buffers that a claim may touch, pinned or not. Each further job is found in its lane's index, locked, and deleted by
 * its ctid. If it failed before, its errors are read too.
 */
export function mostBuffers(limit: number, { retried = false } = {}): number {
  return 80 + (limit - 1) * (retried ? 9 : 5);
}

/** Reads the leases, because a claim under EXPLAIN does not return its jobs. */
export async function heldJobs(client: pg.ClientBase): Promise<HeldJobs> {
  const { rows } = await client.query<{ id: string; key: string }>(
    "select unnest(ids) as id, key from sluice.lease order by 1",
  );
  return { ids: rows.map((row) => row.id), keys: rows.map((row) => row.key) };
}

/** The median of single claims with some work before each, since the cost depends on how far the cursors lag. */
export function costOfClaim(client: pg.ClientBase, options: { limit: number; times: number }): Promise<Call> {
  return measureOften(options.times, async () => {
    for (let batch = 0; batch < 2; batch++) {
      await enqueueBatch(client, 100);
      await settleBatch(client, await claimBatch(client, 100));
    }
    await enqueueBatch(client, options.limit);
    return measure(client, claimText, [options.limit]);
  });
}
