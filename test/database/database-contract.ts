// What the Database port promises, whichever way its statements take.

import { afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import { schemaVersion } from "../../src/core/schema-version.ts";
import { enqueue } from "../../src/core/sql/index.ts";
import { type SQL, sql } from "../../src/core/sql/sql.ts";
import type { Row, Statement } from "../../src/core/sql/statement.ts";
import { freePort } from "../../src/local/ports.ts";
import type { Database } from "../../src/queue/ports.ts";
import { answers } from "../support/answers.ts";
import { examples } from "../support/statement-examples.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { wholeLife } from "../support/whole-life.ts";
import { type OpenedWay, openDatabase, type Way } from "./ways.ts";

const select = (query: SQL, options: { isRepeatable?: boolean } = {}): Statement<Row[]> => ({
  name: "test",
  isRepeatable: false,
  ...options,
  build: () => query,
  decode: (rows) => [...rows],
});

export function databaseContract(name: string, openWay: Way): void {
  const server = useTestDatabase();
  const opened: OpenedWay[] = [];
  const openTo = async (url: string, options: Parameters<typeof openDatabase>[1] = {}): Promise<Database> => {
    const way = await openWay(url);
    opened.push(way);
    return openDatabase(way.transport, options);
  };
  const open = (options: Parameters<typeof openDatabase>[1] = {}) => openTo(server.url, options);

  beforeAll(() => server.pool.query(functions));
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(({ close }) => close()));
    await server.pool.query("truncate note; alter sequence calls restart");
  });
  const count = async (text: string) => (await server.pool.query<{ n: number }>(text)).rows[0]?.n;
  const notes = () => count("select count(*)::int as n from note");
  const calls = () => count("select coalesce(pg_sequence_last_value('calls'), 0)::int as n");

  describe(`${name}: values`, () => {
    test("come back in the types that the decoders expect", async () => {
      const [row] = await (await open()).run(select(everyType));
      expect(row).toEqual({
        big: "9007199254740993",
        exact: "1.50",
        whole: 7,
        float: 0.1,
        json: { a: [1, null], b: "ä€😀" },
        numbers: [1, 2],
        texts: ['a,"b', null],
        id: "01900000-0000-7000-8000-000000000000",
        yes: true,
        nothing: null,
        empty: "",
        bytes: Buffer.from([0, 255]),
      });
    });

    test("are stored as they were given, of every type that a statement sends", async () => {
      const texts = ['it\'s "x"\\n', "{a,b}", "", "ä€😀"];
      const json = JSON.stringify({ b: 1.0, a: '\\u00e4 "q"', big: 12345678901234567890n.toString() });
      const [row] = await (await open()).run(
        select(sql`
          select ${7}::int as whole, ${1.5}::float8 as float, ${true}::boolean as yes, ${null}::text as nothing,
                 ${texts}::text[] as texts, ${[1, 359]}::int[] as numbers,
                 ${json}::jsonb::text as json, ${null}::uuid[] as no_list`),
      );
      const { rows } = await server.pool.query("select $1::jsonb::text as json", [json]);
      expect(row).toEqual({
        ...{ whole: 7, float: 1.5, yes: true, nothing: null, texts, numbers: [1, 359], no_list: null },
        json: rows[0].json,
      });
    });

    test("of several megabytes arrive whole, both ways", async () => {
      const text = "x".repeat(8 * 1024 * 1024);
      const rows = await (await open()).run(select(sql`select ${text}::text as text`));
      expect(rows.map((row) => row.text === text)).toEqual([true]);
    });

    test("of each of Sluice's statements are those of its declared type", async () => {
      const db = await open();
      const keys = new Map(
        Object.entries<Statement<unknown>[]>(examples).flatMap(([key, variants]) =>
          variants.map((variant) => [variant.name, key as keyof typeof answers] as const),
        ),
      );
      await wholeLife({
        async run(statement) {
          const answer = await db.run(statement);
          answers[keys.get(statement.name) ?? "ping"].parse(answer);
          return answer;
        },
      });
    });
  });

  describe(`${name}: a statement`, () => {
    test("is a transaction: an error undoes all of it, and the next one works", async () => {
      const db = await open();
      const failing = db.run(select(sql`select write_note(), 1 / 0`));
      await expect(failing).rejects.toMatchObject({ name: "StatementError", code: "22012" });
      expect(await notes()).toBe(0);
      await db.run(select(sql`select write_note()`));
      expect(await notes()).toBe(1);
    });

    test("with a limit is stopped by Postgres, and the next one has no limit", async () => {
      const db = await open();
      const slow = db.run(select(sql`select pg_sleep(60)`), { limitMs: 100 });
      await expect(slow).rejects.toMatchObject({ code: "database_busy", cause: { code: "57014" } });
      expect(await db.run(select(sql`select ${7}::int as n`), { limitMs: 1000 })).toEqual([{ n: 7 }]);
      const limits = Array.from({ length: 5 }, () =>
        db.run(select(sql`select current_setting('statement_timeout') as ms`)),
      );
      expect((await Promise.all(limits)).flat()).toEqual(limits.map(() => ({ ms: "0" })));
      expect(
        await count(
          "select count(*)::int as n from pg_stat_activity where query like '%pg_sleep(60)%' and state = 'active' and pid <> pg_backend_pid()",
        ),
      ).toBe(0);
    });

    test("runs beside others, and a slow one holds up no other", async () => {
      const db = await open();
      await db.run(select(sql`select 1`));
      const ended: string[] = [];
      const slow = db.run(select(sql`select pg_sleep(0.3)`)).then(() => ended.push("slow"));
      await db.run(select(sql`select 1`)).then(() => ended.push("quick"));
      await slow;
      expect(ended).toEqual(["quick", "slow"]);
      const many = Array.from({ length: 50 }, (_, n) => db.run(select(sql`select ${n}::int as n`)));
      expect((await Promise.all(many)).map(([row]) => row?.n)).toEqual(many.map((_, n) => n));
    });

    test("leaves no setting behind for the next one", async () => {
      const db = await open();
      await db.run(select(sql`select set_config('work_mem', '77MB', true)`));
      const seen = await db.run(select(sql`select current_setting('work_mem') as work_mem`));
      expect(seen).not.toEqual([{ work_mem: "77MB" }]);
    });

    test("runs on a database whose default is SERIALIZABLE at READ COMMITTED, once it has collided", async () => {
      const database = new URL(server.url).pathname.slice(1);
      await server.pool.query(
        `alter database ${database} set default_transaction_isolation = 'serializable'`,
      );
      const db = await open();
      const isolation = select(sql`select current_setting('transaction_isolation') as level`);
      try {
        await db.run(select(sql`select 1`)); // the first one comes with the check of the schema
        expect(await db.run(isolation)).toEqual([{ level: "serializable" }]);
        await db.run(select(sql`select fail_times('40001', 1)`));
        expect(await db.run(isolation)).toEqual([{ level: "read committed" }]);
        await expect(db.run(select(sql`select write_note(), 1 / 0`))).rejects.toThrow("division by zero");
        expect(await notes()).toBe(0);
        await db.run(select(sql`select write_note()`));
        expect(await notes()).toBe(1);
      } finally {
        await server.pool.query(`alter database ${database} reset all`);
      }
    });
  });

  describe(`${name}: an error`, () => {
    test.each([
      ["53100", "database_full"],
      ["53200", "database_failing"],
      ["58030", "database_failing"],
      ["58000", "database_unavailable"],
      ["55P03", "database_busy"],
      ["57014", "database_busy"],
      ["42501", "database_unavailable"],
      ["25006", "database_read_only"],
      ["SL422", "idempotency_conflict"],
      ["22023", "request_invalid"],
    ])("with SQLSTATE %s is %s, and is not sent again", async (sqlstate, code) => {
      const db = await open();
      const failing = db.run(select(sql`select fail_times(${sqlstate}, 1000)`));
      await expect(failing).rejects.toMatchObject({ name: "SluiceError", code });
      expect(await calls()).toBe(1);
    });

    test.each(["40001", "40P01", "42883", "XX000"])(
      "with %s means that nothing was done, so any statement is sent once more",
      async (sqlstate) => {
        const db = await open();
        await db.run(select(sql`select fail_times(${sqlstate}, 1), write_note()`));
        expect(await notes()).toBe(1);
        await server.pool.query("alter sequence calls restart");
        await expect(db.run(select(sql`select fail_times(${sqlstate}, 1000)`))).rejects.toThrow();
        expect(await calls()).toBe(2);
      },
    );

    test("of a fault in the statement is thrown as it is, with the statement's name", async () => {
      const failing = (await open()).run(select(sql`select 1 / 0`));
      await expect(failing).rejects.toMatchObject({
        name: "StatementError",
        statement: "test",
        code: "22012",
      });
    });

    test("through a schema that is too old is schema_outdated, and nothing is written", async () => {
      const text = (version: number) =>
        `create or replace function sluice.schema_version() returns int language sql as 'select ${version}'`;
      await server.pool.query(text(schemaVersion - 1));
      try {
        const db = await open();
        const writing = db.run(select(sql`select write_note()`));
        await expect(writing).rejects.toMatchObject({ code: "schema_outdated" });
        expect(await notes()).toBe(0);
        await server.pool.query(text(schemaVersion));
        await db.run(select(sql`select write_note()`));
        expect(await notes()).toBe(1);
      } finally {
        await server.pool.query(text(schemaVersion));
      }
    });
  });

  describe(`${name}: no answer`, () => {
    const endOwnSession = sql`select count_call(), pg_terminate_backend(pg_backend_pid())`;

    test.each([
      [true, 2],
      [false, 1],
    ])("a repeatable statement (%s) is sent %i times when its session ends", async (isRepeatable, times) => {
      const db = await open();
      await db.run(select(sql`select 1`));
      const ending = db.run(select(endOwnSession, { isRepeatable }));
      await expect(ending).rejects.toMatchObject({ code: "database_unavailable" });
      expect(await calls()).toBe(times);
    });

    test("within the time is database_unavailable, soon, and the next statement works", async () => {
      const db = await open({ timeoutMs: 300 });
      await db.run(select(sql`select 1`));
      const startedMs = performance.now();
      const sleeping = db.run(select(sql`select pg_sleep(3)`));
      await expect(sleeping).rejects.toMatchObject({ code: "database_unavailable" });
      expect(performance.now() - startedMs).toBeLessThan(1500);
      expect(await db.run(select(sql`select 1 as one`))).toEqual([{ one: 1 }]);
    });
  });
}

/** For ways that connect with the first statement. */
export function unreachableContract(name: string, openWay: Way): void {
  const noDatabase = () => inject("adminDatabaseUrl").replace(/[^/]+$/, "no_such_database");
  const noServer = async () => `postgresql://u:p@127.0.0.1:${await freePort()}/none`;
  test.each([
    ["a server that is out of reach", noServer, "the database is out of reach"],
    ["a database that does not exist", noDatabase, "the database does not let the Worker in"],
  ])(`${name}: %s is database_unavailable, at once`, async (_, toUrl, message) => {
    const way = await openWay(await toUrl());
    const startedMs = performance.now();
    const sent = openDatabase(way.transport).run(enqueue([{ type: "echo", payload: {} }]));
    await expect(sent).rejects.toMatchObject({ code: "database_unavailable" });
    await expect(sent).rejects.toThrow(message);
    expect(performance.now() - startedMs).toBeLessThan(1500);
    await way.close();
  });
}

/** Statements read times as numbers: drizzle's drivers change the parser of timestamps for everybody in the process. */
const everyType = sql.raw(`
  select 9007199254740993::int8 as big, 1.50::numeric as exact, 7::int as whole, 0.1::float8 as float,
    '{"a": [1, null], "b": "ä€😀"}'::jsonb as json,
    array[1, 2] as numbers, array['a,"b', null] as texts, '01900000-0000-7000-8000-000000000000'::uuid as id,
    true as yes, null::text as nothing, ''::text as empty, '\\x00ff'::bytea as bytes`);

/** A sequence counts calls, because a rollback does not undo it. */
const functions = `
  create table note (at timestamptz default now());
  create function write_note() returns void language sql volatile as 'insert into note default values';
  create sequence calls;
  create function count_call() returns bigint language sql volatile as $$select nextval('calls')$$;
  create function fail_times(p_state text, p_times int) returns void language plpgsql as $$
  begin
    if nextval('calls') <= p_times then
      raise exception using errcode = p_state, message = 'as asked';
    end if;
  end $$`;
