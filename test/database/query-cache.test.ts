// A cache between the Worker and Postgres, as Hyperdrive has one unless it is turned off. The one of these tests answers from
// memory where Hyperdrive may: an equal text with equal values that calls no stable or volatile function of Postgres.
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { enqueue, readCacheProbe } from "../../src/core/sql/index.ts";
import { compile, type Row, type Statement } from "../../src/core/sql/statement.ts";
import type { Transport } from "../../src/edge/database/transport.ts";
import { createPgTransport } from "../../src/edge/hyperdrive/pg-transport.ts";
import { createSluice } from "../../src/edge/sluice.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { examples } from "../support/statement-examples.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { newIsolate, openDatabase } from "./ways.ts";

const db = useTestDatabase();
const statements = Object.values<Statement<unknown>[]>(examples).flat();
let uncachedCall: RegExp;
beforeAll(async () => {
  const { rows } = await db.pool.query<{ proname: string }>(
    "select distinct proname from pg_proc where pronamespace = 'pg_catalog'::regnamespace and provolatile <> 'i'",
  );
  // A name after a dot is that of a function in another schema, of which Hyperdrive knows nothing.
  uncachedCall = new RegExp(`(?<![."\\w])(${rows.map(({ proname }) => proname).join("|")})\\s*\\(`);
});
beforeEach(() => emptyQueue(db.pool));

/** `isOn` can be changed, as an operator does. */
function withCache(transport: Transport) {
  const memory = new Map<string, Row[]>();
  const cache = { isOn: true, hits: [] as string[] };
  const caching: Transport = {
    ...transport,
    async send(sent, options) {
      const last = sent.at(-1);
      const key = JSON.stringify(last);
      if (!cache.isOn || !last || uncachedCall.test(last.text)) return transport.send(sent, options);
      const known = memory.get(key);
      if (known) cache.hits.push(last.text);
      const rows = known ?? (await transport.send(sent, options));
      memory.set(key, rows);
      return rows;
    },
  };
  return { cache, transport: caching };
}

const jobs = async () => (await db.pool.query("select count(*)::int as n from sluice.jobs")).rows[0].n;

describe("a cache that answers", () => {
  test("is found before the first statement, which is refused with what to do", async () => {
    const { cache, transport } = withCache(createPgTransport(db.url));
    const database = openDatabase(transport);
    const refused = () => database.run(enqueue([{ type: "echo", payload: {} }]));
    await expect(refused()).rejects.toMatchObject({
      code: "database_cached",
      message: expect.stringContaining("wrangler hyperdrive update <id> --caching-disabled true"),
    });
    await expect(refused()).rejects.toMatchObject({ code: "database_cached" });
    expect(await jobs()).toBe(0);
    cache.isOn = false;
    await refused();
    expect(await jobs()).toBe(1);
    await transport.close();
  });

  test("makes /health and the API a 503 that says so, and stops the rounds", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const database = { isIn: () => true, open: () => withCache(createPgTransport(db.url)).transport };
    const note = defineJob("note", { payload: z.object({}), run: () => {} });
    const worker = createSluice([database], { jobs: [note] });
    const key = "sk_the_key_of_the_cache_tests";
    const env = { DATABASE_URL: db.url, SLUICE_SCHEMA: "sluice", SLUICE_ADMIN_KEY: key };
    const work: Promise<unknown>[] = [];
    const context = { waitUntil: (promise: Promise<unknown>) => void work.push(promise) };
    const health = await worker.fetch(new Request("https://sluice.example/health"), env, context);
    expect(health.status).toBe(503);
    expect(await health.json()).toEqual({ status: "unavailable", checks: { database: "cached" } });
    const request = new Request("https://sluice.example/v1/jobs", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ type: "note" }),
    });
    const enqueued = await worker.fetch(request, env, context);
    expect(enqueued.status).toBe(503);
    expect(await enqueued.json()).toMatchObject({ type: "urn:sluice:problem:database_cached" });
    await expect(worker.scheduled({ cron: "* * * * *" }, env, context)).rejects.toMatchObject({
      code: "database_cached",
    });
    await Promise.all(work);
    vi.restoreAllMocks();
  });
});

describe("the text of each statement", () => {
  test("keeps a cache from answering, even if nobody had looked for one", async () => {
    const { cache, transport } = withCache(createPgTransport(db.url));
    const isolate = Object.assign(newIsolate(), { isUncached: true });
    const database = openDatabase(transport, { isolate });
    for (const statement of statements)
      for (let time = 1; time <= 2; time++) await database.run(statement).catch(() => {}); // some need a lease
    const [text] = new Set(cache.hits);
    expect(cache.hits).toEqual([text]);
    expect(text).toBe(compile(readCacheProbe()).text);
    await transport.close();
  });

  test("calls now() for that in a part that Postgres leaves out of the plan", async () => {
    for (const statement of statements.filter(({ mayBeCached }) => !mayBeCached)) {
      const { text, values } = compile(statement);
      expect(text).toMatch(/^with uncached as \(select now\(\)\)\s+select /);
      const { rows } = await db.pool.query(`explain ${text}`, values);
      expect(JSON.stringify(rows)).not.toContain("uncached");
    }
  });
});
