// A snapshot takes less than 100 ms with a million waiting jobs, a day of minutes and a week of rounds.
import pg from "pg";
import { beforeAll, expect, test } from "vitest";
import { snapshot } from "../../src/core/sql/index.ts";
import { fillBooks, fillLedger } from "../support/busy-books.ts";
import { fillQueue, longSize } from "../support/large-queue.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const calls = 300;

beforeAll(async () => {
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await fillQueue(client, longSize);
  await fillBooks(client);
  await fillLedger(client, { rows: 20_000 });
  await client.query("vacuum analyze");
  await client.end();
});

test("the 99th percentile of snapshot() is under 100 ms, with 20,000 unfolded entries", async () => {
  const usual = await percentiles();
  await fillLedger(db.pool, { rows: 80_000 });
  await db.pool.query("vacuum analyze sluice.ledger");
  const late = await percentiles(); // as many as a reap round folds in one call
  for (const [entries, { p50, p99 }] of Object.entries({ "20,000": usual, "100,000": late }))
    process.stdout.write(
      `snapshot of a million jobs, ${entries} unfolded entries: p50 ${p50} ms, p99 ${p99} ms\n`,
    );
  expect(usual.p99).toBeLessThan(100);
});

async function percentiles(): Promise<{ p50: number; p99: number }> {
  const took: number[] = [];
  for (let call = 0; call < calls; call++) {
    const beganMs = performance.now();
    await db.run(snapshot());
    took.push(performance.now() - beganMs);
  }
  took.sort((a, b) => a - b);
  const at = (part: number) => Number(took[Math.floor(calls * part)]?.toFixed(1));
  return { p50: at(0.5), p99: at(0.99) };
}
