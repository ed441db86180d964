// sluice/sql with each driver in its usual style. test/drivers has those that are not installed here.
import { Pool as NeonPool, neon, neonConfig } from "@neondatabase/serverless";
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle as drizzleNeonHttp } from "drizzle-orm/neon-http";
import { drizzle as drizzleNeonServerless } from "drizzle-orm/neon-serverless";
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import { drizzle as drizzlePostgresJs } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { WebSocket } from "ws";
import * as z from "zod";
import type { FlowBuilder } from "../../src/core/flow.ts";
import { claim, findJob } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import {
  complete,
  enqueue,
  enqueueFlow,
  enqueueMany,
  enqueueQuery,
  enqueueWithOutcome,
  type FlowJobOptions,
  signal,
  type Transaction,
} from "../../src/sql/in-transaction.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const welcome = defineJob("welcome", {
  payload: z.object({ userId: z.string(), locale: z.string().default("en") }),
  queue: "mail",
  maxAttempts: 3,
  run: () => {},
});

const digest = defineJob("digest", {
  payload: z.object({ items: z.array(z.object({ userId: z.string() })) }),
  run: () => {},
});

const report = defineJob("report", {
  payload: z.object({ day: z.string() }),
  after: { sent: [welcome] },
  run: () => {},
});

beforeAll(() => db.pool.query("create table customer (id text primary key)"));
beforeEach(async () => {
  await emptyQueue(db.pool);
  await db.pool.query("truncate customer");
});

class Undone extends Error {}

/** Runs the work in a transaction of the driver. `insert` is the app's own write. */
type InTransaction = (
  work: (tx: Transaction, insert: (id: string) => Promise<unknown>) => Promise<void>,
) => Promise<void>;

const sqlOfPostgres = postgres(db.url, { max: 2, onnotice: () => {} });
// drizzle changes how its client writes and reads times, so it gets one of its own.
const sqlOfDrizzle = postgres(db.url, { max: 2, onnotice: () => {} });
const neonPool = new NeonPool({ connectionString: db.url });
neonPool.on("error", () => {}); // the database is dropped before all connections are closed: end() does not wait for that
beforeAll(() => {
  neonConfig.fetchEndpoint = inject("neonEndpoint");
  neonConfig.webSocketConstructor = WebSocket;
  neonConfig.wsProxy = () => `${new URL(inject("neonEndpoint")).host}/v2`;
  neonConfig.useSecureWebSocket = false;
  neonConfig.pipelineConnect = false;
  neonConfig.pipelineTLS = false;
});
afterAll(async () => {
  await sqlOfPostgres.end();
  await sqlOfDrizzle.end();
  await neonPool.end();
});

const drivers: Record<string, InTransaction> = {
  async pg(work) {
    const client = await db.pool.connect();
    try {
      await client.query("begin");
      await work(client, (id) => client.query("insert into customer values ($1)", [id]));
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      throw error;
    } finally {
      client.release();
    }
  },
  async postgres(work) {
    await sqlOfPostgres.begin((tx) => work(tx, (id) => tx`insert into customer values (${id})`));
  },
  async "drizzle on neon-serverless"(work) {
    await drizzleNeonServerless(neonPool).transaction((tx) =>
      work(tx, (id) => tx.execute(drizzleSql`insert into customer values (${id})`)),
    );
  },
  async "drizzle on postgres-js"(work) {
    await drizzlePostgresJs(sqlOfDrizzle).transaction((tx) =>
      work(tx, (id) => tx.execute(drizzleSql`insert into customer values (${id})`)),
    );
  },
  async "drizzle on node-postgres"(work) {
    await drizzle(db.pool).transaction((tx) =>
      work(tx, (id) => tx.execute(drizzleSql`insert into customer values (${id})`)),
    );
  },
};

async function counts() {
  const { rows } = await db.pool.query<{ jobs: number; customers: number }>(
    "select (select count(*) from sluice.jobs)::int as jobs, (select count(*) from customer)::int as customers",
  );
  return rows[0];
}

describe.each(Object.keys(drivers))("in a transaction of %s", (name) => {
  const inTransaction = drivers[name] as InTransaction;

  test("a flow and a signal commit with the app's own row, or roll back with it", async () => {
    const describe = (flow: FlowBuilder<FlowJobOptions>) => {
      const first = flow.add(welcome, { userId: "u1" }, { priority: 9 });
      return { first, second: flow.add(report, { day: "it's" }, { after: { sent: [first] } }) };
    };
    const undone = inTransaction(async (tx, insert) => {
      await insert("u1");
      await enqueueFlow(tx, describe);
      await signal(tx, "go", "k");
      throw new Undone();
    });
    await expect(undone).rejects.toThrow(Undone);
    expect(await counts()).toEqual({ jobs: 0, customers: 0 });

    let made: Awaited<ReturnType<typeof enqueueFlow<ReturnType<typeof describe>>>> | undefined;
    const firsts: boolean[] = [];
    await inTransaction(async (tx, insert) => {
      await insert("u1");
      made = await enqueueFlow(tx, describe);
      firsts.push(await signal(tx, "go", "k", { by: "ann" }), await signal(tx, "go", "k"));
    });
    expect(await counts()).toEqual({ jobs: 2, customers: 1 });
    expect(firsts).toEqual([true, false]);
    const { flowId, jobs } = made ?? { flowId: "", jobs: { first: "", second: "" } };
    expect(await db.run(findJob(jobs.first))).toMatchObject({ queue: "mail", priority: 9, flowId });
    const second = await db.run(findJob(jobs.second));
    expect(second).toMatchObject({ status: "blocked", waitingFor: { kind: "jobs", jobIds: [jobs.first] } });
  });

  test("the job commits with the app's own row, with every option", async () => {
    const scheduledAt = new Date(Date.now() + 3_600_000);
    const expiresAt = new Date(Date.now() + 7_200_000);
    let id = "";
    await inTransaction(async (tx, insert) => {
      await insert("u1");
      id = await enqueue(
        tx,
        welcome,
        { userId: 'it\'s "u1"\n€' },
        {
          priority: 9,
          scheduledAt,
          expiresAt,
          idempotencyKey: "k",
          partitionKey: "p",
          traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
          tags: ["a", "b,c"],
        },
      );
    });
    expect(await counts()).toEqual({ jobs: 1, customers: 1 });
    const job = await db.run(findJob(id));
    expect(job).toMatchObject({
      type: "welcome",
      queue: "mail",
      maxAttempts: 3,
      priority: 9,
      payload: { userId: 'it\'s "u1"\n€' },
      scheduledAt,
      expiresAt,
      idempotencyKey: "k",
      partitionKey: "p",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      tags: ["a", "b,c"],
    });
  });

  test("a rollback removes both the job and the row", async () => {
    const work = inTransaction(async (tx, insert) => {
      await insert("u1");
      await enqueue(tx, welcome, { userId: "u1" });
      throw new Undone();
    });
    await expect(work).rejects.toThrow(Undone);
    expect(await counts()).toEqual({ jobs: 0, customers: 0 });
  });

  test("one call enqueues many jobs, in order", async () => {
    let ids: string[] = [];
    await inTransaction(async (tx) => {
      ids = await enqueueMany(tx, welcome, [{ userId: "a" }, { userId: "b" }], {
        delaySeconds: 5,
        tags: ["bulk"],
      });
    });
    const jobs = await Promise.all(ids.map(async (id) => await db.run(findJob(id))));
    expect(jobs.map((job) => job?.payload)).toEqual([{ userId: "a" }, { userId: "b" }]);
    expect(jobs[0]).toMatchObject({ queue: "mail", maxAttempts: 3, tags: ["bulk"] });
  });

  test("a handler's write and its job's completion commit together", async () => {
    await inTransaction(async (tx) => void (await enqueue(tx, welcome, { userId: "u1" })));
    const claimed = await db.run(
      claim({ queue: "mail", types: [{ type: "welcome" }], limit: 1, leaseSeconds: 60 }),
    );
    const [job] = claimed.jobs;
    const attempt = { jobId: job?.id ?? "", leaseKey: job?.leaseKey ?? "" };
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
});

describe.each(Object.entries(drivers))("debounce with %s", (_, inTransaction) => {
  test("tells the outcome, and commits or rolls back with the transaction", async () => {
    const debounce = { key: "k", mode: "last", seconds: 60, maxWaitSeconds: 600 } as const;
    let first: string | undefined;
    await inTransaction(async (tx) => {
      const told = await enqueueWithOutcome(tx, welcome, { userId: "a" }, { debounce });
      expect(told).toMatchObject({ outcome: "created", replacedJobId: null, deduplicated: false });
      first = told.jobId;
    });
    const undone = inTransaction(async (tx) => {
      const told = await enqueueWithOutcome(tx, welcome, { userId: "b" }, { debounce });
      expect(told).toMatchObject({ outcome: "replaced", replacedJobId: first });
      throw new Undone();
    });
    await expect(undone).rejects.toThrow(Undone);
    expect(await db.run(findJob(first ?? ""))).toMatchObject({ status: "pending", queue: "mail" });
    await inTransaction(async (tx) => {
      const throttle = { key: "k", seconds: 60 };
      const one = await enqueue(tx, welcome, { userId: "a" }, { throttle });
      expect(await enqueue(tx, welcome, { userId: "b" }, { throttle })).toBe(one);
    });
  });

  test("merges items of the type's payload, and refuses others", async () => {
    const debounce = { key: "k", mode: "merge", seconds: 60, maxItems: 10 } as const;
    await inTransaction(async (tx) => {
      const id = await enqueue(tx, digest, { userId: "a" }, { debounce });
      expect((await enqueueWithOutcome(tx, digest, { userId: "b" }, { debounce })).jobId).toBe(id);
      // @ts-expect-error An item has a userId.
      await expect(enqueue(tx, digest, { name: "c" }, { debounce })).rejects.toThrow("invalid payload");
      // @ts-expect-error Without the mode merge the payload is the whole list.
      await expect(enqueue(tx, digest, { userId: "c" })).rejects.toThrow("invalid payload");
    });
    const { rows } = await db.pool.query("select payload from sluice.jobs where type = 'digest'");
    expect(rows).toEqual([{ payload: { items: [{ userId: "a" }, { userId: "b" }] } }]);
  });

  test("many items are merged into one job, in their order", async () => {
    const debounce = { key: "many", mode: "merge", seconds: 60 } as const;
    const ids = await enqueueMany(db.pool, digest, [{ userId: "p1" }, { userId: "p2" }], { debounce });
    expect(new Set(ids).size).toBe(1);
    expect(await db.run(findJob(ids[0] ?? ""))).toMatchObject({
      payload: { items: [{ userId: "p1" }, { userId: "p2" }] },
    });
    // @ts-expect-error An item has a userId.
    await expect(enqueueMany(db.pool, digest, [{}], { debounce })).rejects.toThrow("invalid payload");
    // @ts-expect-error Without the mode merge the payload is the whole list.
    await expect(enqueueMany(db.pool, digest, [{ userId: "p1" }])).rejects.toThrow("invalid payload");
  });
});

describe("a batch over Neon's HTTP", () => {
  test("of drizzle commits the job with the app's own row, or not at all", async () => {
    const customer = pgTable("customer", { id: text().primaryKey() });
    const app = drizzleNeonHttp(neon(db.url));
    const [, enqueued] = await app.batch([
      app.insert(customer).values({ id: "d1" }),
      enqueueQuery(app, welcome, { userId: "d1" }, { priority: 7 }),
    ]);
    expect(enqueued.rows).toHaveLength(1);
    expect(await counts()).toEqual({ jobs: 1, customers: 1 });
    const bad = app.batch([
      enqueueQuery(app, welcome, { userId: "d2" }),
      app.insert(customer).values({ id: "d1" }),
    ]);
    await expect(bad).rejects.toThrow();
    expect(await counts()).toEqual({ jobs: 1, customers: 1 });
  });

  test("the job commits with the app's own row, or not at all", async () => {
    const sql = neon(db.url);
    await sql.transaction([
      sql`insert into customer values ('n1')`,
      enqueueQuery(sql, welcome, { userId: "n1" }),
    ]);
    expect(await counts()).toEqual({ jobs: 1, customers: 1 });
    const bad = sql.transaction([
      enqueueQuery(sql, welcome, { userId: "n2" }),
      sql`insert into customer values ('n1')`,
    ]);
    await expect(bad).rejects.toMatchObject({ code: "23505" });
    expect(await counts()).toEqual({ jobs: 1, customers: 1 });
  });

  test("a single enqueue needs no transaction", async () => {
    expect(await enqueue(neon(db.url), welcome, { userId: "n3" })).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe("an invalid payload", () => {
  test("is refused before anything is sent, with the path of the field", async () => {
    const never: Transaction = { query: () => Promise.reject(new Error("was sent")) };
    // @ts-expect-error: the payload does not compile either
    await expect(enqueue(never, welcome, { userId: 7 })).rejects.toMatchObject({
      code: "request_invalid",
      faults: [{ path: "payload.userId" }],
    });
    // @ts-expect-error: nor does it in a list
    await expect(enqueueMany(never, welcome, [{ userId: "a" }, {}])).rejects.toMatchObject({
      faults: [{ path: "payload.1.userId" }],
    });
  });

  test("a payload is stored as the caller gave it, without the schema's defaults", async () => {
    const id = await enqueue(db.pool, welcome, { userId: "u" });
    expect((await db.run(findJob(id)))?.payload).toEqual({ userId: "u" });
  });
});
