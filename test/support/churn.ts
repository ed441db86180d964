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
export const claimText = "select * from sluice.claim('default', array['mail'], $1::int, 600)";
export const settleText = "select * from sluice.settle($1)";

export function newJobs(size: number): string {
  const payloads = Array.from({ length: size }, () => payload);
  return JSON.stringify({ type: "mail", payloads, max_attempts: 20 });
}

export async function enqueueBatch(client: pg.ClientBase, size: number): Promise<void> {
  await client.query(enqueueText, [newJobs(size)]);
}

export interface ClaimedRow {
  id: string;
  lease_generation: string;
}

export async function claimBatch(client: pg.ClientBase, size: number): Promise<ClaimedRow[]> {
  const { rows } = await client.query<ClaimedRow>(claimText, [size]);
  return rows;
}

export async function settleBatch(
  client: pg.ClientBase,
  rows: readonly ClaimedRow[],
  retries = 0,
): Promise<void> {
  if (rows.length === 0) return;
  await client.query(settleText, [settlements(rows, retries)]);
}

export function settlements(rows: readonly ClaimedRow[], retries = 0): string {
  return JSON.stringify(
    rows.map(({ id, lease_generation: generation }, index) =>
      index < rows.length * retries
        ? { id, generation, outcome: "retry", message: "busy", seconds: 0.05 }
        : { id, generation, outcome: "complete" },
    ),
  );
}

/**
 * What a claim may touch, pin or no pin. Each further job is found in its lane's index, locked, and deleted by its
 * place; of one that failed before, the errors are read too.
 */
export function mostBuffers(limit: number, { retried = false } = {}): number {
  return 80 + (limit - 1) * (retried ? 9 : 5);
}

/** What is claimed and not settled, read from the leases: an explained claim does not say what it claimed. */
export async function heldJobs(client: pg.ClientBase): Promise<ClaimedRow[]> {
  const { rows } = await client.query<ClaimedRow>(
    "select unnest(ids) as id, generation as lease_generation from sluice.lease",
  );
  return rows;
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
