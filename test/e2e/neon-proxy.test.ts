// The local proxy with Neon's own driver: it must behave as Neon does, since the Worker relies on that in production.
import { connect } from "node:net";
import { NeonDbError, neon, neonConfig, Pool } from "@neondatabase/serverless";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { WebSocket } from "ws";
import { type NeonProxy, startNeonProxy } from "../../src/local/neon-proxy.ts";
import { freePort } from "../../src/local/ports.ts";

const url = inject("adminDatabaseUrl");
const sql = neon(url);
let proxy: NeonProxy;

beforeAll(async () => {
  proxy = await startNeonProxy({ postgresPort: Number(new URL(url).port) });
  neonConfig.fetchEndpoint = proxy.endpoint;
  neonConfig.webSocketConstructor = WebSocket;
  neonConfig.wsProxy = () => `127.0.0.1:${proxy.port}/v2`;
  neonConfig.useSecureWebSocket = false;
  neonConfig.pipelineConnect = false;
  neonConfig.pipelineTLS = false;
  await sql`drop table if exists proxy_check`;
  await sql`create table proxy_check (id int primary key, note text)`;
});

afterAll(async () => {
  await sql`drop table proxy_check`;
  await proxy.close();
});

describe("a query over HTTP", () => {
  it("returns every type in the form that the driver parses", async () => {
    const [row] = await sql`
      select 9007199254740993::int8 as big, 1.50::numeric as exact, '{"a": [1, null]}'::jsonb as json,
        '2026-01-02T03:04:05.678Z'::timestamptz as at, array[1, 2] as numbers, array['a,"b', null] as texts,
        true as yes, null::text as nothing, ''::text as empty, '\\x00ff'::bytea as bytes`;
    expect(row).toEqual({
      big: "9007199254740993",
      exact: "1.50",
      json: { a: [1, null] },
      at: new Date("2026-01-02T03:04:05.678Z"),
      numbers: [1, 2],
      texts: ['a,"b', null],
      yes: true,
      nothing: null,
      empty: "",
      bytes: Buffer.from([0, 255]),
    });
  });

  it("accepts parameters of every type, and returns the number of affected rows", async () => {
    const values = [7, "o'clock", ["a", null], { b: 1 }, null, true, new Date(0)];
    const text = `select $1::int as a, $2::text as b, $3::text[] as c, $4::jsonb as d, $5::text as e,
      $6::bool as f, $7::timestamptz as g`;
    const result = await sql.query(text, values, { fullResults: true, arrayMode: true });
    expect(result.rows).toEqual([values]);
    expect(result).toMatchObject({ rowCount: 1, command: "SELECT" });
  });

  it("returns the SQLSTATE and the fields of an error, and the connection stays usable", async () => {
    await sql`insert into proxy_check values (1, 'one')`;
    const failure = await sql`insert into proxy_check values (1, 'again')`.catch((e) => e);
    expect(failure).toBeInstanceOf(NeonDbError);
    expect(failure).toMatchObject({
      code: "23505",
      constraint: "proxy_check_pkey",
      table: "proxy_check",
      severity: "ERROR",
    });
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });

  it("must be a single statement, as on Neon", async () => {
    await expect(sql.query("select 1; select 2")).rejects.toMatchObject({ code: "42601" });
  });

  it("can send and return eight megabytes", async () => {
    const text = "x".repeat(8 * 1024 * 1024);
    const [row] = await sql`select ${text}::text as text`;
    expect(row?.text.length).toBe(text.length);
  });

  it("that leaves a transaction open does not affect the next query", async () => {
    await sql`begin`;
    await sql`insert into proxy_check values (30, 'thirty')`;
    const elsewhere = new Pool({ connectionString: url });
    const { rowCount } = await elsewhere.query("select from proxy_check where id = 30");
    expect(rowCount).toBe(1);
    await elsewhere.end();
  });

  it("runs on the database that the connection string names", async () => {
    const other = neon(inject("workerDatabaseUrl"));
    expect(await other`select current_database() as name`).toEqual([{ name: "sluice_worker" }]);
    const missing = neon(url.replace(/[^/]+$/, "no_such_database"));
    await expect(missing`select 1`).rejects.toMatchObject({ code: "3D000" });
  });
});

describe("a batch over HTTP", () => {
  it("returns each query's rows, in one request", async () => {
    const before = proxy.requests();
    const results = await sql.transaction([sql`select 1 as a`, sql`select 2 as b`]);
    expect(results).toEqual([[{ a: 1 }], [{ b: 2 }]]);
    expect(proxy.requests()).toBe(before + 1);
  });

  it("is one transaction: all of it is written or nothing", async () => {
    const batch = sql.transaction([
      sql`insert into proxy_check values (10, 'ten')`,
      sql`insert into proxy_check values (1 / 0, 'never')`,
    ]);
    await expect(batch).rejects.toMatchObject({ code: "22012" });
    expect(await sql`select from proxy_check where id = 10`).toEqual([]);
  });

  it("runs with the requested isolation level and access mode", async () => {
    const query = sql`select current_setting('transaction_isolation') as level,
      current_setting('transaction_read_only') as read_only, current_setting('transaction_deferrable') as deferrable`;
    const options = { isolationLevel: "Serializable", readOnly: true, deferrable: true } as const;
    const [rows] = await sql.transaction([query], options);
    expect(rows).toEqual([{ level: "serializable", read_only: "on", deferrable: "on" }]);
  });
});

describe("a session over the WebSocket", () => {
  it("keeps a transaction open between queries", async () => {
    const pool = new Pool({ connectionString: url });
    const client = await pool.connect();
    await client.query("begin");
    await client.query("insert into proxy_check values (20, 'twenty')");
    expect((await client.query("select note from proxy_check where id = $1", [20])).rows).toEqual([
      { note: "twenty" },
    ]);
    await client.query("rollback");
    expect((await client.query("select from proxy_check where id = 20")).rowCount).toBe(0);
    client.release();
    await pool.end();
  });
});

describe("the proxy", () => {
  it("serves others when a client hangs up during a query", async () => {
    const statement = sql.query("select pg_sleep(0.2)", [], {
      fetchOptions: { signal: AbortSignal.timeout(20) },
    });
    await expect(statement).rejects.toThrow();
    const socket = connect(proxy.port, "127.0.0.1");
    await new Promise((resolve) =>
      socket.write("POST /sql HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{", resolve),
    );
    socket.destroy();
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });

  it("replaces a connection that Postgres ended", async () => {
    const ending = sql`select pg_terminate_backend(pg_backend_pid())`;
    await expect(ending).rejects.toMatchObject({ code: "57P01" });
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });

  it("gives an error without a SQLSTATE when Postgres is unreachable", async () => {
    const unreachable = await startNeonProxy({ postgresPort: await freePort() });
    const response = await fetch(unreachable.endpoint, {
      method: "POST",
      headers: { "neon-connection-string": url },
      body: JSON.stringify({ query: "select 1", params: [] }),
    });
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual({ message: expect.stringContaining("ECONNREFUSED") });
    await unreachable.close();
  });

  it("closes its connections to a database on request, so that it can be dropped", async () => {
    await sql`create database proxy_drop_check`;
    await neon(url.replace(/[^/]+$/, "proxy_drop_check"))`select 1`;
    await proxy.closeDatabase("proxy_drop_check");
    await sql`drop database proxy_drop_check`;
  });
});

it("keeps running while its connections are terminated under load", async () => {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query("create database terminated");
  const loaded = neon(url.replace(/[^/]+$/, "terminated"));
  let isOver = false;
  const loads = Array.from({ length: 6 }, async () => {
    while (!isOver) await loaded`select pg_sleep(0.001)`.catch(() => {});
  });
  let terminated = 0;
  while (terminated < 200) {
    const { rowCount } = await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'terminated'",
    );
    terminated += rowCount ?? 0;
  }
  isOver = true;
  await Promise.all(loads);
  await admin.query("drop database terminated with (force)");
  await admin.end();
  expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
});
