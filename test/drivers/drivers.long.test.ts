// sluice/sql in a transaction of Kysely and of Prisma. The test installs them into this folder (310 MB), which is too much
// for everybody's `npm ci`.
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { claim, findJob } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import {
  complete,
  enqueue,
  enqueueMany,
  enqueueWithOutcome,
  signal,
  type Transaction,
} from "../../src/sql/in-transaction.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const here = import.meta.dirname;
const run = promisify(execFile);
const db = useTestDatabase();
const welcome = defineJob("welcome", {
  payload: z.object({ userId: z.string() }),
  queue: "mail",
  run: () => {},
});

class Undone extends Error {}

/** Runs the work in a transaction of the tool. `insert` is the app's own write. */
type InTransaction = (
  work: (tx: Transaction, insert: (id: string) => Promise<unknown>) => Promise<void>,
) => Promise<void>;

interface Tool {
  inTransaction: InTransaction;
  /** The function of the database, without sluice/sql. */
  enqueueByHand(type: string, options: { isUndone: boolean }): Promise<void>;
  close(): Promise<void>;
}

const tools = new Map<string, Tool>();

beforeAll(async () => {
  await run("npm", ["install", "--no-save"], { cwd: here });
  // Prisma's command would load a program for migrations from its own server. It does not need it to generate a client.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath };
  await run("npx", ["prisma", "generate", "--schema", "schema.prisma"], { cwd: here, env });
  await db.pool.query("create table public.customer (id text primary key)");
  tools.set("Kysely", await openKysely());
  tools.set("Prisma", await openPrisma());
});
afterAll(() => Promise.all([...tools.values()].map(({ close }) => close())));
beforeEach(async () => {
  await emptyQueue(db.pool);
  await db.pool.query("truncate customer");
});

async function counts() {
  const { rows } = await db.pool.query(
    "select (select count(*) from sluice.jobs)::int as jobs, (select count(*) from customer)::int as customers",
  );
  return rows[0];
}

describe.each(["Kysely", "Prisma"])("in a transaction of %s", (name) => {
  const inTransaction: InTransaction = (work) => (tools.get(name) as Tool).inTransaction(work);

  test("jobs and a signal commit with the app's own row", async () => {
    let ids: string[] = [];
    const scheduledAt = new Date(Date.now() + 3_600_000);
    await inTransaction(async (tx, insert) => {
      await insert("u1");
      const options = { priority: 9, scheduledAt, idempotencyKey: "k", tags: ["a", "b,c"] };
      ids = [await enqueue(tx, welcome, { userId: 'it\'s "u1"\n€' }, options)];
      ids.push(...(await enqueueMany(tx, welcome, [{ userId: "a" }, { userId: "b" }])));
      const throttle = { key: "k", seconds: 60 };
      const told = await enqueueWithOutcome(tx, welcome, { userId: "c" }, { throttle });
      expect(told).toMatchObject({ outcome: "created", deduplicated: false });
      expect(await signal(tx, "go", "1", { by: "ann" })).toBe(true);
    });
    expect(await counts()).toEqual({ jobs: 4, customers: 1 });
    expect(await db.run(findJob(ids[0] ?? ""))).toMatchObject({
      ...{ queue: "mail", priority: 9, scheduledAt, idempotencyKey: "k", tags: ["a", "b,c"] },
      payload: { userId: 'it\'s "u1"\n€' },
    });
  });

  test("a rollback removes the jobs and the row", async () => {
    const work = inTransaction(async (tx, insert) => {
      await insert("u1");
      await enqueue(tx, welcome, { userId: "u1" });
      await enqueueMany(tx, welcome, [{ userId: "a" }]);
      throw new Undone();
    });
    await expect(work).rejects.toThrow(Undone);
    expect(await counts()).toEqual({ jobs: 0, customers: 0 });
  });

  test("a handler's write and its job's completion commit together", async () => {
    await inTransaction(async (tx) => void (await enqueue(tx, welcome, { userId: "u1" })));
    const { jobs } = await db.run(claim({ queue: "mail", types: ["welcome"], limit: 1, leaseSeconds: 60 }));
    const attempt = { jobId: jobs[0]?.id ?? "", leaseKey: jobs[0]?.leaseKey ?? "" };
    await inTransaction(async (tx, insert) => {
      await insert("u1");
      await complete(tx, attempt, { sent: true });
    });
    expect(await db.run(findJob(attempt.jobId))).toMatchObject({
      status: "completed",
      output: { sent: true },
    });
    const stale = inTransaction(async (tx, insert) => {
      await insert("u2");
      await complete(tx, attempt);
    });
    await expect(stale).rejects.toThrow("is lost");
    expect(await counts()).toEqual({ jobs: 1, customers: 1 });
  });

  test("the database's own function commits and rolls back too", async () => {
    const { enqueueByHand } = tools.get(name) as Tool;
    await enqueueByHand("welcome", { isUndone: false });
    await expect(enqueueByHand("welcome", { isUndone: true })).rejects.toThrow(Undone);
    expect(await counts()).toEqual({ jobs: 1, customers: 0 });
  });
});

/** Only what this test uses, because the packages are not installed when it is compiled. */
async function openKysely(): Promise<Tool> {
  const { Kysely, PostgresDialect, CompiledQuery } = await import(installed("kysely"));
  const app = new Kysely({ dialect: new PostgresDialect({ pool: db.pool }) });
  type Trx = {
    executeQuery(query: unknown): Promise<{ rows: unknown[] }>;
    insertInto(table: string): Insert;
  };
  type Insert = { values(row: object): { execute(): Promise<unknown> } };
  return {
    inTransaction: (work) =>
      app.transaction().execute((trx: Trx) => {
        const tx = {
          query: (text: string, values: unknown[]) => trx.executeQuery(CompiledQuery.raw(text, values)),
        };
        return work(tx, (id) => trx.insertInto("customer").values({ id }).execute());
      }),
    enqueueByHand: (type, { isUndone }) =>
      app.transaction().execute(async (trx: Trx) => {
        await trx.executeQuery(CompiledQuery.raw("select sluice.enqueue($1)", [type]));
        if (isUndone) throw new Undone();
      }),
    close: () => Promise.resolve(), // the pool is the test's
  };
}

async function openPrisma(): Promise<Tool> {
  const { PrismaClient } = await import(join(here, "generated/client.ts"));
  const { PrismaPg } = await import(installed("@prisma/adapter-pg"));
  const app = new PrismaClient({ adapter: new PrismaPg({ connectionString: db.url }) });
  type Tx = {
    $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>;
    $executeRaw(parts: TemplateStringsArray, ...values: unknown[]): Promise<number>;
    customer: { create(options: object): Promise<unknown> };
  };
  return {
    inTransaction: (work) =>
      app.$transaction((tx: Tx) => work(tx, (id) => tx.customer.create({ data: { id } }))),
    enqueueByHand: (type, { isUndone }) =>
      app.$transaction(async (tx: Tx) => {
        await tx.$executeRaw`select sluice.enqueue(${type})`;
        if (isUndone) throw new Undone();
      }),
    close: () => app.$disconnect(),
  };
}

function installed(name: string): string {
  return pathToFileURL(createRequire(join(here, "package.json")).resolve(name)).href;
}
