// Over all statements: each prepares with a type for every parameter, and answers with just what its decoder reads.

import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NewJob } from "../../src/core/job.ts";
import * as statements from "../../src/core/sql/index.ts";
import { compile, type Statement } from "../../src/core/sql/statement.ts";
import { firing } from "../support/alarms.ts";
import { noLease } from "../support/jobs.ts";
import { sqlState } from "../support/sessions.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { asWorker } from "../support/worker-role.ts";

const db = useTestDatabase();
const voidType = 2278;
/** date, timestamp, timestamptz, interval: their text is what DateStyle and IntervalStyle make of it. */
const timeTypes = [1082, 1114, 1184, 1186];
const id = "01900000-0000-7000-8000-000000000000";
const held = { id, leaseKey: noLease };
const fullJob: NewJob = {
  type: "echo",
  payload: { a: 1 },
  queue: "q",
  priority: 1,
  maxAttempts: 1,
  scheduledAt: new Date(),
  expiresAt: new Date(Date.now() + 60_000),
  idempotencyKey: "k",
  partitionKey: "p",
  traceparent: "t",
  tags: ["x"],
};
const { idempotencyKey: _key, partitionKey: _partition, ...manyOptions } = fullJob;

const answer = { target: "ops", urlHash: "h", status: 200, error: null, retryInSeconds: 1.5 };

type Name = keyof typeof statements;
const examples = {
  addKey: [
    statements.addKey("me", {
      name: "n",
      role: "producer",
      jobTypes: ["a"],
      rateLimitPerSecond: 1,
      keyHash: "ab".repeat(32),
    }),
    statements.addKey("me", {
      name: "n",
      role: "viewer",
      jobTypes: null,
      rateLimitPerSecond: 1,
      keyHash: "ab".repeat(32),
    }),
  ],
  addPartitions: [statements.addPartitions()],
  advanceCursors: [statements.advanceCursors()],
  checkReach: [statements.checkReach()],
  mendStamps: [statements.mendStamps()],
  auditTestNotice: [statements.auditTestNotice("me", [{ target: "ops", status: 200 }])],
  backlog: [statements.backlog({ types: ["a"], cap: 10 })],
  books: [statements.books()],
  cancel: [statements.cancel(id), statements.cancel(id, { types: ["a"] })],
  changeAlarms: [
    statements.changeAlarms([], []),
    statements.changeAlarms(
      [
        { state: firing, version: undefined, notice: { type: "alarm.firing" } },
        { state: { ...firing, queue: "q" }, version: 1, notice: null },
      ],
      [{ name: "ops", urlHash: "h" }],
    ),
  ],
  claim: [
    statements.claim({ queue: "q", types: ["a", "b"], limit: 1, leaseSeconds: 0.5 }),
    statements.claim({ queue: "q", types: [], limit: 1, leaseSeconds: 60, worker: "w" }),
    statements.claim({
      queue: "q",
      types: [
        "a",
        { type: "b", leaseSeconds: 90, limits: { concurrency: 2, rate: { limit: 1, perSeconds: 60 } } },
      ],
      limit: 1,
      leaseSeconds: 60,
      maxBytes: 1,
    }),
  ],
  claimDeliveries: [
    statements.claimDeliveries({ targets: [{ name: "ops", urlHash: "h" }], limit: 1, leaseSeconds: 60 }),
  ],
  closeBreakerByProbe: [statements.closeBreakerByProbe(held)],
  completeOne: [statements.completeOne(held, null), statements.completeOne(held, { a: [1] })],
  countDeadLetters: [
    statements.countDeadLetters({ type: "a", count: 1 }),
    statements.countDeadLetters({ type: "a", reason: "fatal", count: 1 }),
  ],
  depths: [statements.depths()],
  discard: [statements.discard("me", { id }), statements.discard("me", { id, reason: "r" })],
  dropOldestDay: [statements.dropOldestDay()],
  enqueue: [statements.enqueue([{ type: "echo", payload: {} }, fullJob]), statements.enqueue([])],
  enqueueMany: [
    statements.enqueueMany("echo", [{ a: 1 }, {}], {}),
    statements.enqueueMany("echo", [], manyOptions),
  ],
  enqueueOne: [statements.enqueueOne({ type: "echo", payload: {} }), statements.enqueueOne(fullJob)],
  extend: [statements.extend([held], { seconds: 1.5 }), statements.extend([], { seconds: 1 })],
  extendOne: [statements.extendOne(held, { seconds: 1.5 })],
  findJob: [statements.findJob(id)],
  findStates: [statements.findStates([id]), statements.findStates([])],
  findKey: [statements.findKey("ab".repeat(32))],
  foldLedger: [statements.foldLedger({ limit: 1 })],
  knowsQueue: [statements.knowsQueue("q")],
  listAudit: [statements.listAudit({ limit: 1 }), statements.listAudit({ before: "1", limit: 1 })],
  listBreakers: [statements.listBreakers()],
  listDeadLetters: [
    statements.listDeadLetters({ limit: 1 }),
    statements.listDeadLetters({ type: "a", reason: "fatal", before: id, limit: 1 }),
  ],
  listJobs: [
    statements.listJobs({ limit: 1 }),
    statements.listJobs({ types: ["a"], status: "dead", queue: "q", tag: "t", before: id, limit: 1 }),
  ],
  inspect: [statements.inspect()],
  listKeys: [statements.listKeys({ limit: 1 })],
  listPauses: [statements.listPauses()],
  openBreaker: [statements.openBreaker("a")],
  pause: [statements.pause("me", { queue: "q" }), statements.pause("me", { type: "a" })],
  ping: [statements.ping()],
  prune: [statements.prune({ limit: 1 })],
  pruneDeliveries: [statements.pruneDeliveries({ giveUpDays: 3, keepDays: 30, limit: 1 })],
  readAlarms: [statements.readAlarms()],
  durations: [statements.durations({ pairs: 1 })],
  recentMinutes: [statements.recentMinutes({ pairs: 1 })],
  recentAttempts: [statements.recentAttempts("a")],
  recordEnqueueErrors: [statements.recordEnqueueErrors(1)],
  recordRound: [
    statements.recordRound({ kind: "drain", queue: "q", ms: 1.5, report: { claimed: 1, end: "empty" } }),
    statements.recordRound({ kind: "reap", ms: 0, report: {} }),
  ],
  reapExpired: [statements.reapExpired({ limit: 1 })],
  reapLeases: [
    statements.reapLeases({ limit: 1 }),
    statements.reapLeases({
      limit: 1,
      backoffs: { a: { baseSeconds: 1, maxSeconds: 2, jitterSeconds: 0 } },
    }),
  ],
  replay: [statements.replay("me", { id }), statements.replay("me", { id, payload: { a: 1 } })],
  replayMany: [
    statements.replayMany("me", { type: "a", count: 1 }),
    statements.replayMany("me", { type: "a", reason: "fatal", count: 1 }),
  ],
  requireSchemaVersion: [statements.requireSchemaVersion()],
  resume: [statements.resume("me", { queue: "q" }), statements.resume("me", { type: "a" })],
  revokeKey: [statements.revokeKey("me", id)],
  settle: [
    statements.settle([]),
    statements.settle([
      { job: held, outcome: { kind: "complete", output: null } },
      { job: held, outcome: { kind: "retry", message: "m", retryInSeconds: 1 } },
      { job: held, outcome: { kind: "bury", message: "m" } },
      { job: held, outcome: { kind: "snooze", retryInSeconds: 1 } },
      { job: held, outcome: { kind: "release" } },
    ]),
  ],
  settleOne: [
    statements.settleOne({ job: held, outcome: { kind: "complete", output: null } }),
    statements.settleOne({ job: held, outcome: { kind: "bury", message: "m" } }),
  ],
  settleDeliveries: [
    statements.settleDeliveries([]),
    statements.settleDeliveries([
      { delivery: { id, tries: 1 }, ...answer, outcome: "delivered" },
      { delivery: null, ...answer, outcome: "gone" },
    ]),
  ],
  silenceAlarm: [statements.silenceAlarm("me", { alarm: "dead_letters", until: new Date() })],
  snapshot: [statements.snapshot(), statements.snapshot({ windows: [5, 30] })],
} satisfies Record<Name, Statement<unknown>[]>;

let client: pg.PoolClient;
let worker: pg.Client;
beforeAll(async () => {
  client = await db.pool.connect();
  worker = new pg.Client({ connectionString: asWorker(db.url) });
  await worker.connect();
});
afterAll(async () => {
  client.release();
  await worker.end();
});

test("every statement is looked at here", () => {
  expect(Object.keys(examples).toSorted()).toEqual(Object.keys(statements).toSorted());
});

describe.each(Object.entries<Statement<unknown>[]>(examples))("%s", (_, variants) => {
  test("prepares, and declares the type of each parameter", async () => {
    for (const statement of variants) {
      const { text, values } = compile(statement, "sluice");
      await client.query(`prepare example as ${text}`);
      const { rows } = await client.query(
        "select parameter_types::text[] as types from pg_prepared_statements",
      );
      await client.query("deallocate example");
      expect(rows[0].types).toHaveLength(values.length);
      const casts = new Set([...text.matchAll(/\$(\d+)::/g)].map((match) => match[1]));
      expect(casts.size).toBe(values.length);
    }
  });

  test("answers with just the columns that its decoder reads", async () => {
    for (const statement of variants) {
      const { text, values } = compile(statement, "sluice");
      await client.query("begin");
      const { fields } = await client.query(text, values);
      await client.query("rollback");
      const columns = fields.filter((field) => field.dataTypeID !== voidType).map((field) => field.name);
      expect(columnsRead(statement)).toEqual(new Set(columns));
      expect(fields.filter((field) => timeTypes.includes(field.dataTypeID))).toEqual([]);
    }
  });

  test("runs under the Worker's role", async () => {
    for (const statement of variants) {
      const { text, values } = compile(statement, "sluice");
      await worker.query("begin");
      const state = await sqlState(worker.query(text, values));
      await worker.query("rollback");
      expect(state).toBe("none");
    }
  });

  test("has a name in words", () => {
    for (const { name } of variants) expect(name).toMatch(/^[a-z]+( [a-z]+)*$/);
  });
});

function columnsRead(statement: Statement<unknown>): Set<string> {
  const read = new Set<string>();
  const row = new Proxy<Record<string, unknown>>(
    {},
    {
      get: (_, column) => {
        read.add(String(column));
        return null;
      },
    },
  );
  try {
    statement.decode([row]);
  } catch {
    // What reads into a value stumbles over its absence, after it was asked for.
  }
  return read;
}
