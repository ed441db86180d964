// Each page of the dashboard takes less than 100 ms of database time with 5 million jobs: a million waiting, 100,000 dead of
// fifty kinds of error.
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compile } from "../../src/core/sql/statement.ts";
import { measure, median } from "../support/explain.ts";
import { fillPages } from "../support/fill-pages.ts";
import { pages } from "../support/pages.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const client = new pg.Client({ connectionString: db.url });

beforeAll(async () => {
  await client.connect();
  await fillPages(client, { waiting: 1_000_000, scheduled: 200_000, finished: 3_700_000, dead: 100_000 });
}, 1_800_000);
afterAll(() => client.end());

test.each(pages)("$name", async ({ name, statements }) => {
  let ms = 0;
  let buffers = 0;
  for (const { text, values } of statements.map((statement) => compile(statement))) {
    const calls = [];
    for (let call = 0; call < 9; call++) calls.push(await measure(client, text, values));
    ms += median(calls.map((call) => call.ms));
    buffers += median(calls.map((call) => call.buffers));
  }
  process.stdout.write(`${name}: ${statements.length} statements, ${ms.toFixed(1)} ms, ${buffers} buffers\n`);
  expect(ms).toBeLessThan(100);
});
