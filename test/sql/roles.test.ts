// An app's database role: it can enqueue and complete in its transactions, and do nothing else.
import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { books } from "../../src/core/sql/index.ts";
import { sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
const role = `app_${randomBytes(6).toString("hex")}`;
const allowed = ["enqueue", "enqueue_many", "complete"];
const table = ["select from", "delete from", "truncate", "drop table"];
const attemptsOn: Record<string, string[]> = {
  r: table,
  p: table,
  v: ["select from", "drop view"],
  S: ["select from", "drop sequence"],
};
let app: pg.Client;

beforeAll(async () => {
  await queue.query(`create role ${role} login`);
  await queue.query(`create schema ${role} authorization ${role}`);
  await queue.query(`grant usage on schema sluice to ${role}`);
  for (const name of allowed) await queue.query(`grant execute on function sluice.${name} to ${role}`);
  app = new pg.Client({ connectionString: db.url.replace("sluice:sluice@", `${role}@`) });
  await app.connect();
});
beforeEach(async () => {
  await emptyQueue(db.pool);
  await app.query("rollback; reset all");
});
afterAll(async () => {
  await app.end();
  await queue.query(`drop owned by ${role} cascade`);
  await queue.query(`drop role ${role}`);
});

describe("a role with USAGE and EXECUTE on three functions", () => {
  test("enqueues and completes in its own transaction", async () => {
    await app.query("create table note (id uuid)");
    await app.query("begin");
    const { rows } = await app.query(
      "select sluice.enqueue('echo', idempotency_key => 'k', tags => '{x}') as id",
    );
    await app.query(
      "insert into note select sluice.enqueue_many('echo', array['{}', '{}']::jsonb[], delay_seconds => 60)",
    );
    await app.query("commit");
    const job = await queue.claimOne();
    expect(job.id).toBe(rows[0].id);
    const completed = await app.query("select sluice.complete($1, $2, '1') as applied", [
      job.id,
      job.leaseKey,
    ]);
    expect(completed.rows).toEqual([{ applied: true }]);
    expect(await db.run(books())).toMatchObject([{ enqueued: 3, completed: 1, pending: 2 }]);
  });

  test("cannot read or write any table, view or sequence", async () => {
    const relations = await queue.query<{ name: string; kind: string }>(`
      select relname as name, relkind::text as kind from pg_class
      where relnamespace = 'sluice'::regnamespace and relkind in ('r', 'p', 'v', 'S')`);
    expect(relations.length).toBeGreaterThan(20);
    for (const { name, kind } of relations)
      for (const attempt of attemptsOn[kind] ?? [])
        expect([attempt, name, await sqlState(app.query(`${attempt} sluice.${name}`))]).toEqual([
          attempt,
          name,
          "42501",
        ]);
    expect(await sqlState(app.query("select nextval('sluice.ready_seq')"))).toBe("42501");
    expect(await sqlState(app.query("insert into sluice.ledger (lane) values (1)"))).toBe("42501");
    expect(await sqlState(app.query("update sluice.ready set attempt = 0"))).toBe("42501");
  });

  test("cannot call any other function", async () => {
    const callable = await queue.query(
      `select distinct proname as name from pg_proc
       where pronamespace = 'sluice'::regnamespace and has_function_privilege($1, oid, 'execute') order by 1`,
      [role],
    );
    expect(callable.map((row) => row.name)).toEqual([...allowed].sort());
    expect(await sqlState(app.query("select * from sluice.claim('default', '{echo}', 1, 60)"))).toBe("42501");
    expect(await sqlState(app.query("select sluice.settle('{}', '{}')"))).toBe("42501");
  });

  test("cannot create anything in the schema", async () => {
    expect(await sqlState(app.query("create table sluice.mine (id int)"))).toBe("42501");
  });
});

describe("a hostile search_path of the caller changes nothing", () => {
  const traps = `
    create table TRAP.job (like_nothing int); create table TRAP.ready (x int); create table TRAP.lane (x int);
    create table TRAP.ledger (x int); create table TRAP.idempotency (x int); create table TRAP.lease (x int);
    create type TRAP.new_job as (x int);
    create function TRAP.lane_of(text, text, smallint, smallint default 0) returns int language sql as 'select 1/0';
    create function TRAP.new_id() returns uuid language sql as 'select (1/0)::text::uuid';
    create function TRAP.fault_of(TRAP.new_job) returns text language sql as 'select (1/0)::text';
    create function TRAP.settle(jsonb) returns table (applied boolean) language sql as 'select 1/0 = 1';
    create function TRAP.now() returns timestamptz language sql as 'select (1/0)::text::timestamptz';
    create function TRAP.coalesce_trap() returns int language sql as 'select 1/0';
    create function TRAP.cardinality(anyarray) returns int language sql as 'select 1/0';`;

  test.each([role, "pg_temp"])("%s", async (schema) => {
    const statements = traps
      .replaceAll("TRAP", schema)
      .split(";")
      .filter((text) => text.trim());
    for (const statement of statements) await app.query(statement);
    await app.query(`set search_path to ${schema}, pg_catalog, sluice`);
    const { rows } = await app.query(
      "select sluice.enqueue('echo', '{}', idempotency_key => 'k', tags => '{x}') as id",
    );
    await app.query("select sluice.enqueue_many('echo', array['{}']::jsonb[], delay_seconds => 60)");
    const job = await queue.claimOne();
    expect(job.id).toBe(rows[0].id);
    const completed = await app.query("select sluice.complete($1, $2) as applied", [job.id, job.leaseKey]);
    expect(completed.rows).toEqual([{ applied: true }]);
    expect(await queue.find(job.id)).toMatchObject({ status: "completed" });
  });

  test("not in the Worker's session either", async () => {
    await queue.query("create schema trap; create table trap.ready (x int); create table trap.lease (x int)");
    const client = await db.pool.connect();
    await client.query("set search_path to trap, pg_catalog");
    const { rows: enqueued } = await client.query(
      `select sluice.enqueue_jobs('[{"type": "echo"}]')->0->>'id' as id`,
    );
    const { rows } = await client.query("select sluice.claim('default', '{echo}', 1, 60) as claimed");
    const id = enqueued[0].id;
    expect(rows[0].claimed.leases[0].jobs[0][0]).toBe(id);
    const { rows: found } = await client.query("select status from sluice.find_job($1)", [id]);
    expect(found).toEqual([{ status: "processing" }]);
    await client.query(
      "select sluice.advance_cursors(), sluice.reap_leases(1), sluice.reap_expired(1), sluice.prune(1)",
    );
    client.release(true);
  });
});
