// The whole queue in one row within 100 ms, at a million waiting jobs, with a day of minutes and a week of rounds.
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

test("the 99th percentile of a look is under 100 ms, with as many entries as claims leave unfolded", async () => {
  const { p50, p99 } = await percentiles();
  process.stdout.write(`a look at a million, 20,000 entries unfolded: p50 ${p50} ms, p99 ${p99} ms\n`);
  expect(p99).toBeLessThan(100);
});

test("with all that a reaper folds in one go still unfolded, the median is", async () => {
  await fillLedger(db.pool, { rows: 80_000 });
  const { p50, p99 } = await percentiles();
  process.stdout.write(`a look at a million, 100,000 entries unfolded: p50 ${p50} ms, p99 ${p99} ms\n`);
  expect(p50).toBeLessThan(100);
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
