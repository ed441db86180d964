// Every statement has the parameter types of test/support/parameter-types.ts, and answers with exactly the columns and
// values that its decoder reads.

import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as statements from "../../src/core/sql/index.ts";
import { compile, type Statement } from "../../src/core/sql/statement.ts";
import type { Database } from "../../src/queue/ports.ts";
import { answers } from "../support/answers.ts";
import { columnTypes } from "../support/column-types.ts";
import { parameterTypes } from "../support/parameter-types.ts";
import { sqlState } from "../support/sessions.ts";
import { examples, fullJob } from "../support/statement-examples.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { wholeLife } from "../support/whole-life.ts";
import { asWorker } from "../support/worker-role.ts";

const db = useTestDatabase();
const voidType = 2278;
/** date, timestamp, timestamptz and interval: DateStyle and IntervalStyle change their text. */
const timeTypes = [1082, 1114, 1184, 1186];
type Name = keyof typeof statements;

let typeNames: Map<number, string>;
let client: pg.PoolClient;
let worker: pg.Client;
beforeAll(async () => {
  client = await db.pool.connect();
  const { rows } = await client.query("select oid, format_type(oid, null) as name from pg_type");
  typeNames = new Map(rows.map(({ oid, name }) => [oid, name]));
  worker = new pg.Client({ connectionString: asWorker(db.url) });
  await worker.connect();
});
afterAll(async () => {
  client.release();
  await worker.end();
});

test("every statement has an example here", () => {
  expect(Object.keys(examples).toSorted()).toEqual(Object.keys(statements).toSorted());
});

describe.each(Object.entries<Statement<unknown>[]>(examples))("%s", (key, variants) => {
  test("can be prepared, and has the listed parameter types", async () => {
    const types: string[] = [];
    for (const statement of variants) {
      const { text, values } = compile(statement, "sluice");
      await client.query(`prepare example as ${text}`);
      const { rows } = await client.query<{ types: string[] }>(
        "select parameter_types::text[] as types from pg_prepared_statements",
      );
      await client.query("deallocate example");
      expect(rows[0]?.types).toHaveLength(values.length);
      types.push(rows[0]?.types.join(", ") ?? "");
    }
    expect(types).toEqual(parameterTypes[key as Name]);
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

  test("answers with what its type says", async () => {
    for (const statement of variants) {
      const { text, values } = compile(statement, "sluice");
      await client.query("begin");
      const { rows } = await client.query(text, values);
      await client.query("rollback");
      answers[key as Name].parse(statement.decode(rows));
    }
  });

  test("has the column types of the recorded list", async () => {
    for (const statement of variants) {
      const { text, values } = compile(statement, "sluice");
      await client.query("begin");
      const { fields } = await client.query(text, values);
      await client.query("rollback");
      const types = fields.map(({ name, dataTypeID }) => `${name} ${typeNames.get(dataTypeID)}`);
      expect(types.join(", ")).toBe(columnTypes[key as Name]);
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

  test("has a name of lower-case words", () => {
    for (const { name } of variants) expect(name).toMatch(/^[a-z]+( [a-z]+)*$/);
  });
});

test("every answer has its declared type while jobs pass through every state", async () => {
  const keys = new Map(
    Object.entries<Statement<unknown>[]>(examples).flatMap(([key, variants]) =>
      variants.map(({ name }) => [name, key as Name] as const),
    ),
  );
  const parsed = new Set<string>();
  const parsing: Database = {
    async run(statement) {
      const answer = await db.run(statement);
      parsed.add(statement.name);
      answers[keys.get(statement.name) ?? "ping"].parse(answer);
      return answer;
    },
  };
  await wholeLife(parsing);
  const shown: Statement<unknown>[] = [
    statements.recordRound({ kind: "reap", ms: 5, report: { end: "done", steps: { leases: { ms: 1 } } } }),
    statements.recordEnqueueErrors(2),
    statements.openBreaker("echo"),
    statements.enqueue([fullJob, { ...fullJob, idempotencyKey: null, delaySeconds: 60, scheduledAt: null }]),
    statements.enqueue([{ ...fullJob, idempotencyKey: null, partitionKey: null, fairKey: "f" }]),
    statements.snapshot({ windows: [5, 30] }),
    statements.durations({ pairs: 10 }),
    statements.recentMinutes({ pairs: 10 }),
    statements.readAlarms(),
    statements.listAudit({ limit: 100 }),
    statements.listDeadLetters({ limit: 10 }),
    statements.ping(),
  ];
  for (const statement of shown) await parsing.run(statement);
  expect([...parsed]).toEqual(
    expect.arrayContaining(["claim", "enqueue", "settle", "snapshot", "read alarms", "durations"]),
  );
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
    // A decoder may fail on null. It has read the column by then.
  }
  return read;
}
