// Each page of the dashboard touches about as many buffers with ten times as many jobs.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compile } from "../../src/core/sql/statement.ts";
import { measure } from "../support/explain.ts";
import { fillPages } from "../support/fill-pages.ts";
import { pages } from "../support/pages.ts";
import { buffersOnServer } from "../support/plans.ts";
import { useTestDatabase } from "../support/test-database.ts";

const small = useTestDatabase();
const large = useTestDatabase();
const clients = [small, large].map(({ url }) => new pg.Client({ connectionString: url }));

beforeAll(async () => {
  for (const [index, client] of clients.entries()) {
    await client.connect();
    const times = index === 0 ? 1 : 10;
    await fillPages(client, {
      ...{ waiting: 6_000 * times, scheduled: 1_000 * times, finished: 6_000 * times, dead: 4_000 * times },
    });
  }
}, 120_000);
afterAll(() => Promise.all(clients.map((client) => client.end())));

describe.each(pages)("$name", ({ statements, isSearch }) => {
  test("has at most three statements", () => {
    expect(statements.length).toBeLessThanOrEqual(3);
  });

  test("touches about as many buffers with ten times as many jobs", async () => {
    const buffers: number[] = [];
    let most = 0;
    for (const client of clients) {
      most = await buffersOnServer(client, 6_500);
      let sum = 0;
      for (const { text, values } of statements.map((statement) => compile(statement))) {
        for (let warmUp = 0; warmUp < 6; warmUp++) await client.query(text, values);
        sum += (await measure(client, text, values)).buffers;
      }
      buffers.push(sum);
    }
    const [before = 0, after = 0] = buffers;
    if (!isSearch) expect(after, buffers.join(", ")).toBeLessThan(1.5 * before + 100);
    expect(after, buffers.join(", ")).toBeLessThan(most);
  });
});
