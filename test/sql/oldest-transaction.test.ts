// The snapshot shows the oldest transaction that keeps dead rows, also to a database owner who is no superuser, as on hosted
// Postgres. It needs its own server: replication and prepared transactions are off in the other tests.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { recordRound, snapshot } from "../../src/core/sql/index.ts";
import { type PostgresServer, startPostgres } from "../../src/local/postgres.ts";
import { until } from "../support/sessions.ts";
import { startStandby } from "../support/standby-feedback.ts";
import { createPgDatabase } from "../support/test-database.ts";

let server: PostgresServer;
let owner: pg.Pool;
let admin: pg.Pool;
const open: pg.Client[] = [];
const directory = mkdtempSync(join(tmpdir(), "sluice-test-"));

beforeAll(async () => {
  const settings = { max_prepared_transactions: "5", wal_level: "logical" };
  server = await startPostgres({ directory: join(directory, "postgres"), ephemeral: true, settings });
  const first = new pg.Client({ connectionString: server.url("postgres") });
  await first.connect();
  for (const text of [
    "create role owner login",
    "create role app login",
    "create database queue owner owner",
  ])
    await first.query(text);
  await first.end();
  admin = new pg.Pool({ connectionString: server.url("queue") });
  owner = new pg.Pool({ connectionString: urlAs("owner") });
  for (const pool of [admin, owner]) pool.on("error", () => {}); // the server stops under them
  await migrate({ databaseUrl: urlAs("owner") });
}, 60_000);
afterEach(async () => {
  for (const client of open.splice(0)) await client.end();
  await admin.query("truncate sluice.round");
});
afterAll(async () => {
  await owner?.end();
  await admin?.end();
  await server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const urlAs = (role: string) => server.url("queue").replace("sluice:sluice@", `${role}@`);
const look = async () => (await createPgDatabase(owner).run(snapshot())).oldestTransaction;

async function connectAs(role: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: urlAs(role) });
  await client.connect();
  open.push(client);
  return client;
}

/** Records a watch round with the current transaction id that ended so many seconds ago. */
async function watchedAgo(seconds: number): Promise<void> {
  const id = await createPgDatabase(owner).run(recordRound({ kind: "watch", ms: 0, report: {} }));
  await admin.query(
    `update sluice.round set started_at = now() - make_interval(secs => $2), ended_at = now() - make_interval(secs => $2)
     where id = $1`,
    [id, seconds],
  );
}

test("there is no oldest transaction when only the snapshot itself runs", async () => {
  expect(await look()).toBeNull();
});

test("a session's transaction counts from its begin, whether it holds a snapshot or an id", async () => {
  for (const text of ["select count(*) from sluice.ready", "select pg_current_xact_id()"]) {
    const client = await connectAs("owner");
    await client.query(`begin isolation level repeatable read; ${text}`);
    const { rows } = await client.query(
      "select extract(epoch from clock_timestamp() - now())::float8 as seconds",
    );
    expect(await look()).toMatchObject({ source: "session" });
    expect((await look())?.seconds).toBeGreaterThanOrEqual(rows[0].seconds);
    await client.query("rollback");
    await client.query("begin");
    expect(await look()).toBeNull(); // it holds nothing yet
    await client.query("rollback");
  }
});

test("another role's transaction is dated by the id that it holds", async () => {
  await watchedAgo(7200);
  await watchedAgo(3600);
  const client = await connectAs("app");
  await client.query("begin isolation level repeatable read; select 1");
  await watchedAgo(60);
  const oldest = await look();
  expect(oldest).toMatchObject({ source: "session" });
  expect(oldest?.seconds).toBeCloseTo(60, -1);
});

test("a prepared transaction counts", async () => {
  const client = await connectAs("owner");
  await client.query(
    "begin; insert into sluice.pause values ('queue', 'x'); prepare transaction 'forgotten'",
  );
  expect(await look()).toMatchObject({ source: "prepared" });
  await client.query("rollback prepared 'forgotten'");
  expect(await look()).toBeNull();
});

test("a replication slot is as old as the first watch round after the id that it holds", async () => {
  await watchedAgo(14_400); // then the database slept
  await admin.query("select pg_create_logical_replication_slot('forgotten', 'pgoutput')");
  expect((await look())?.seconds).toBe(0);
  await watchedAgo(900);
  await watchedAgo(30);
  const oldest = await look();
  expect(oldest).toMatchObject({ source: "slot" });
  expect(oldest?.seconds).toBeCloseTo(900, -1);
  await admin.query("select pg_drop_replication_slot('forgotten')");
});

test("a standby with hot_standby_feedback counts", async () => {
  await watchedAgo(3600);
  const { rows } = await admin.query(
    "select pg_current_xact_id()::text::int as xmin, pg_current_wal_lsn() as lsn",
  );
  await watchedAgo(1800);
  const standby = await startStandby(server.port, { user: "sluice", ...rows[0] });
  await until(
    admin,
    "select count(*) > 0 as reached from pg_stat_replication where backend_xmin is not null",
  );
  const oldest = await look();
  standby.stop();
  expect(oldest).toMatchObject({ source: "standby" });
  expect(oldest?.seconds).toBeCloseTo(1800, -1);
});
