// The whole queue in one row within 100 ms, at a million waiting jobs and a day of books that the reaper is late with.
import pg from "pg";
import { expect, test } from "vitest";
import { snapshot } from "../../src/core/sql/index.ts";
import { fillBooks } from "../support/busy-books.ts";
import { fillQueue, longSize } from "../support/large-queue.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const calls = 300;

test("the 99th percentile of a look at a million waiting jobs is under 100 ms", async () => {
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await fillQueue(client, longSize);
  await fillBooks(client, { ledgerRows: 100_000 });
  await client.query("vacuum analyze");
  await client.end();
  const times: number[] = [];
  for (let call = 0; call < calls; call++) {
    const beganMs = performance.now();
    await db.run(snapshot());
    times.push(performance.now() - beganMs);
  }
  const [p50, p99] = [0.5, 0.99].map(
    (part) => times.toSorted((a, b) => a - b)[Math.floor(calls * part)] ?? 0,
  );
  process.stdout.write(`snapshot at a million: p50 ${p50?.toFixed(1)} ms, p99 ${p99?.toFixed(1)} ms\n`);
  expect(p99).toBeLessThan(100);
});
