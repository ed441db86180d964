// Work that goes through the queue in batches, and what a claim costs before and after it; with an old snapshot held
// open meanwhile, so that nothing that dies can be cleaned away (the pin).
import pg from "pg";
import { type Call, measure, measureOften } from "./explain.ts";

/** A transaction with an id and a snapshot, as a report or a dump holds it. Returns how to end it. */
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
  /** Of the claimed jobs this part is settled as a failure and comes back after 0.05 s. */
  retries?: number;
}

const payload = { customer: 4711, address: "someone@example.com", subject: "a subject of a common length" };

/** Enqueues, claims and completes as many jobs, in batches, on some connections at once. */
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

/** What is claimed and not settled, sorted as settle() likes it. */
export interface HeldJobs {
  ids: string[];
  keys: string[];
}

/** The column `claimed` of a claim's answer, as far as it is needed here. */
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

export async function settleBatch(client: pg.ClientBase, held: HeldJobs, retries = 0): Promise<void> {
  if (held.ids.length > 0) await client.query(settleText, settleValues(held, retries));
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
 * What a claim may touch, pin or no pin. Each further job is found in its lane's index, locked, and deleted by its
 * place; of one that failed before, the errors are read too.
 */
export function mostBuffers(limit: number, { retried = false } = {}): number {
  return 80 + (limit - 1) * (retried ? 9 : 5);
}

/** Read from the leases: an explained claim does not say what it claimed. */
export async function heldJobs(client: pg.ClientBase): Promise<HeldJobs> {
  const { rows } = await client.query<{ id: string; key: string }>(
    "select unnest(ids) as id, key from sluice.lease order by 1",
  );
  return { ids: rows.map((row) => row.id), keys: rows.map((row) => row.key) };
}

/** The median of single claims, each after a little more work: how far the cursors lag is a part of the cost. */
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
