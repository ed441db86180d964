// What the engine costs at a million jobs, as a table, and for 200,000 jobs while the database is pinned. Bytes and buffers
// must be within their limits. Times depend on the machine: the table only marks those that are not.
import pg from "pg";
import { expect, test } from "vitest";
import { churn, costOfClaim, holdSnapshot, mostBuffers } from "../support/churn.ts";
import { fillQueue, longSize } from "../support/large-queue.ts";
import { measureEngine } from "../support/numbers.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();

test("bytes and buffers at a million waiting jobs are within their limits", async () => {
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await fillQueue(client, longSize);
  await client.query("vacuum analyze");
  await client.end();
  const measured = await measureEngine(db.url);
  for (const { what, value, unit, bar } of measured) {
    const verdict = bar === undefined ? "" : `(bar ${bar}${value > bar ? ", MISSED" : ""})`;
    process.stdout.write(
      `${what.padEnd(46)}${value.toFixed(value < 100 ? 2 : 0).padStart(9)} ${unit} ${verdict}\n`,
    );
  }
  for (const { what, value, unit, bar } of measured)
    if (bar !== undefined && unit !== "ms") expect(value, what).toBeLessThanOrEqual(bar);
});

test("after 200,000 jobs in a pinned database, a claim costs what it did at the start", async () => {
  await emptyQueue(db.pool);
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  const release = await holdSnapshot(db.url);
  const costs = async () => ({
    one: await costOfClaim(client, one),
    hundred: await costOfClaim(client, hundred),
  });
  await churn(db.url, { jobs: 1_000 });
  const before = await costs();
  await churn(db.url, { jobs: 200_000 });
  const after = await costs();
  await churn(db.url, { jobs: 50_000, retries: 0.2 });
  const withRetries = await costs();
  await release();
  await client.end();
  process.stdout.write(`${JSON.stringify({ before, after, withRetries }, null, 1)}\n`);
  expect(after.one.buffers).toBeLessThanOrEqual(mostBuffers(1));
  expect(after.hundred.buffers).toBeLessThanOrEqual(mostBuffers(100));
  expect(withRetries.one.buffers).toBeLessThanOrEqual(mostBuffers(1));
  expect(withRetries.hundred.buffers).toBeLessThanOrEqual(mostBuffers(100, { retried: true }));
  expect(after.one.ms).toBeLessThanOrEqual(1.5 * before.one.ms);
  expect(after.hundred.ms).toBeLessThanOrEqual(1.5 * before.hundred.ms);
});

const one = { limit: 1, times: 50 };
const hundred = { limit: 100, times: 50 };
