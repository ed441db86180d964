// Each page of the dashboard takes less than 100 ms of database time with 5 million jobs: a million waiting, 100,000 dead of
// fifty kinds of error.
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compile } from "../../src/core/sql/statement.ts";
import { measure, median } from "../support/explain.ts";
import { type FilledPages, fillPages } from "../support/fill-pages.ts";
import { pageExamples, statementsOf } from "../support/pages.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const client = new pg.Client({ connectionString: db.url });

let filled: FilledPages;

beforeAll(async () => {
  await client.connect();
  filled = await fillPages(client, {
    waiting: 1_000_000,
    scheduled: 200_000,
    finished: 3_700_000,
    dead: 100_000,
  });
}, 1_800_000);
afterAll(() => client.end());

test.each(pageExamples)("$url", async (example) => {
  const statements = await statementsOf(db, example, filled);
  let ms = 0;
  let buffers = 0;
  for (const { text, values } of statements.map((statement) => compile(statement))) {
    const calls = [];
    for (let call = 0; call < 9; call++) calls.push(await measure(client, text, values));
    ms += median(calls.map((call) => call.ms));
    buffers += median(calls.map((call) => call.buffers));
  }
  process.stdout.write(
    `${example.url}: ${statements.length} statements, ${ms.toFixed(1)} ms, ${buffers} buffers\n`,
  );
  expect(statements.length).toBeLessThanOrEqual(3);
  expect(ms).toBeLessThan(100);
});
