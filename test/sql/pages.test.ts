// Each page of the dashboard touches about as many buffers with ten times as many jobs.
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compile } from "../../src/core/sql/statement.ts";
import { pages } from "../../src/dashboard/pages.ts";
import { measure } from "../support/explain.ts";
import { type FilledPages, fillPages } from "../support/fill-pages.ts";
import { type PageExample, pageExamples, statementsOf } from "../support/pages.ts";
import { buffersOnServer } from "../support/plans.ts";
import { useTestDatabase } from "../support/test-database.ts";

const small = useTestDatabase();
const large = useTestDatabase();
const clients = [small, large].map(({ url }) => new pg.Client({ connectionString: url }));

const filled: FilledPages[] = [];

beforeAll(async () => {
  for (const [index, client] of clients.entries()) {
    await client.connect();
    const times = index === 0 ? 1 : 10;
    filled.push(
      await fillPages(client, {
        ...{
          waiting: 6_000 * times,
          scheduled: 1_000 * times,
          finished: 6_000 * times,
          dead: 4_000 * times,
        },
      }),
    );
  }
}, 120_000);
afterAll(() => Promise.all(clients.map((client) => client.end())));

test("every page of the dashboard is measured", () => {
  expect(pageExamples.filter(({ url }) => url.includes(":"))).toEqual([]);
  expect(new Set(pageExamples.map(({ path }) => path))).toEqual(new Set(pages.map(({ path }) => path)));
});

test.each(pageExamples)(
  "$url has at most three statements, and touches about as many buffers with ten times as many jobs",
  async (example) => {
    const buffers: number[] = [];
    for (const [index, client] of clients.entries()) {
      const statements = await statementsOf(
        index === 0 ? small : large,
        example,
        filled[index] as FilledPages,
      );
      expect(statements.length).toBeGreaterThan(0);
      expect(statements.length).toBeLessThanOrEqual(3);
      let sum = 0;
      for (const { text, values } of statements.map((statement) => compile(statement))) {
        for (let warmUp = 0; warmUp < 6; warmUp++) await client.query(text, values);
        sum += (await measure(client, text, values)).buffers;
      }
      buffers.push(sum);
    }
    const [before = 0, after = 0] = buffers;
    if (!example.isSearch) expect(after, buffers.join(", ")).toBeLessThan(1.5 * before + levels(example));
    expect(after, buffers.join(", ")).toBeLessThan(await buffersOnServer(clients[1] as pg.Client, 8_000));
  },
);

/** An index of ten times as many rows has one level more, and each of the 50 jobs of a list is looked up in a dozen indexes. */
const levels = ({ path }: PageExample) => (path === "/jobs" ? 600 : 100);
