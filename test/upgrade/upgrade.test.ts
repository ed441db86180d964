// A database of each release, restored from its dump and migrated to this checkout, and on to two imagined releases, while
// claims, settles and enqueues run. The statements go over Neon's driver, as the Worker sends them.
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { schemaVersion } from "../../src/core/schema-version.ts";
import { sql } from "../../src/core/sql/sql.ts";
import { one, type Statement } from "../../src/core/sql/statement.ts";
import { createDatabase } from "../../src/edge/database/create-database.ts";
import { isolateStateFor } from "../../src/edge/isolate-state.ts";
import { createNeonTransport } from "../../src/edge/neon/neon-transport.ts";
import { parseSettings } from "../../src/edge/settings/env.ts";
import type { Database } from "../../src/queue/ports.ts";
import { differences } from "../support/balance.ts";
import { createPgDatabase, useTestDatabase } from "../support/test-database.ts";
import { type currentStatements, startTraffic } from "../support/traffic.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";
import { makeDump, statementsIn } from "./dump.ts";
import { nextRelease, releaseAfterNext } from "./next-release.ts";

const maxWaitMs = 1000;
const thisCheckout = "this checkout";
const releases = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".sql"));
const checkout = useTestDatabase();
let checkoutDump: string;
beforeAll(async () => {
  checkoutDump = await makeDump(checkout);
});

describe.each([thisCheckout, ...releases])("from %s", (release) => {
  const name = `upgrade_${randomBytes(6).toString("hex")}`;
  const app = `app_${name}`;
  const admin = new pg.Client({ connectionString: inject("adminDatabaseUrl") });
  const url = inject("adminDatabaseUrl").replace(/[^/]+$/, name);
  const pool = new pg.Pool({ connectionString: url });
  pool.on("error", () => {}); // the database is dropped before all connections are closed
  const verbs = verbsOf({ ...createPgDatabase(pool), pool, url });
  let dump: string;

  beforeAll(async () => {
    dump = release === thisCheckout ? checkoutDump : readFileSync(new URL(release, import.meta.url), "utf8");
    await admin.connect();
    await admin.query(`create database ${name}`);
    await admin.query(`create role ${app}`);
    await pool.query(dump);
  });
  afterAll(async () => {
    await pool.end();
    await admin.query(`drop database ${name} with (force)`);
    await admin.query(`drop role ${app}`);
    await admin.end();
  });

  /** Leaves out what changes with time: a retry becomes due, and a lease that ran out long ago shows no worker. */
  const shownJobs = () =>
    verbs.query(
      `select to_jsonb(jobs) - '{scheduled_at,worker,lease_expires_at}'::text[] as job
       from sluice.jobs where queue = 'upgrade' order by id`,
    );
  const mayCall = async (signature: string) =>
    (
      await verbs.query(`select has_function_privilege('${app}', 'sluice.${signature}', 'execute') as may`)
    )[0];

  test("the schema version is raised if this Worker's statements do not run on that schema", async () => {
    const [{ version } = { version: 0 }] = await verbs.query<{ version: number }>(
      "select sluice.schema_version() as version",
    );
    // The number is written twice: in SQL and in TypeScript.
    if (release === thisCheckout) expect(version).toBe(schemaVersion);
    const failed = await unprepared(pool, statementsIn(checkoutDump));
    if (failed.length > 0) expect(schemaVersion).toBeGreaterThan(version);
  });

  test("no job is lost, and no statement fails or waits longer than a second", async () => {
    const before = await shownJobs();
    expect(before.length).toBeGreaterThan(20);
    const db = await neonDatabase(url);
    const traffic = startTraffic(db, {
      connections: 2,
      ...(release === thisCheckout ? {} : { statements: await statementsOf(release) }),
    });
    await traffic.more(10);

    await migrate({ databaseUrl: url });
    await traffic.more(10);
    await migrate({ databaseUrl: url, files: nextRelease });
    await pool.query(`grant execute on function sluice.inner_probe to ${app}`);
    const probes = startProbes(db);
    await traffic.more(10);
    await migrate({ databaseUrl: url, files: releaseAfterNext });
    await traffic.more(10);
    await traffic.stop();

    expect(new Set(await probes.stop())).toEqual(new Set(["111", "31"]));
    expect(traffic.errors).toEqual([]);
    expect(traffic.longestMs).toBeLessThan(maxWaitMs);
    expect(await shownJobs()).toMatchObject(before); // this release may show more of a job
    expect(await verbs.count("job")).toBe(before.length + traffic.enqueued);
    expect(await differences(verbs)).toEqual([]);
    expect(await mayCall("inner_probe(int, int)")).toEqual({ may: true });
  });

  test("the old Worker's statements still run", async () => {
    expect(await unprepared(pool, statementsIn(dump))).toEqual([]);
  });

  test("jobs are claimed and settled as before", async () => {
    const claimed = await verbs.claim({ queue: "upgrade", types: ["pending"], run: 10, worker: "w" });
    expect(claimed).toHaveLength(3);
    const [, ...others] = claimed;
    await verbs.settle(others, complete); // new columns of old tables and partitions are filled
    const workers = await Promise.all(claimed.map(async ({ id }) => (await verbs.find(id)).worker));
    expect(workers).toEqual(["w", "w", "w"]);
    const leasedJobs = await verbs.query<{ id: string; leaseKey: string }>(
      `select unnest(ids) as id, key as "leaseKey" from sluice.lease join sluice.lane using (lane) where type = 'processing'`,
    );
    expect(leasedJobs).toHaveLength(6);
    expect((await verbs.settle(leasedJobs, complete)).every(({ applied }) => applied)).toBe(true);
    expect(await differences(verbs)).toEqual([]);
  });
});

async function neonDatabase(databaseUrl: string): Promise<Database> {
  const settings = await parseSettings({
    DATABASE_URL: databaseUrl,
    SLUICE_NEON_ENDPOINT: inject("neonEndpoint"),
    SLUICE_ADMIN_KEY: "sk_the_key_of_the_upgrade_test",
  });
  const isolate = isolateStateFor(settings);
  isolate.fitsSchema = true; // the Worker of the old release fits the old schema
  return createDatabase(createNeonTransport(settings), {
    schema: settings.schema,
    timeoutMs: 30_000,
    isolate,
  });
}

/** What the Worker of that release sends. */
async function statementsOf(release: string): Promise<typeof currentStatements> {
  const { statements } = await import(`./statements-${release.replace(/\.sql$/, ".ts")}`);
  return statements;
}

/** Calls a function without a pause while the functions that it calls are replaced. Answers with all results. */
function startProbes(db: Database): { stop(): Promise<string[]> } {
  let isAsked = true;
  const probe: Statement<string> = {
    name: "probe",
    isRepeatable: false,
    build: (schema) => sql`select ${schema}.probe() as result`,
    decode: one((row) => row.result as string),
  };
  const loops = times(3, async () => {
    const results: string[] = [];
    while (isAsked) results.push(await db.run(probe));
    return results;
  });
  return {
    stop: async () => {
      isAsked = false;
      return (await Promise.all(loops)).flat();
    },
  };
}

/** The statements that Postgres refuses, and why. */
async function unprepared(pool: pg.Pool, texts: readonly string[]): Promise<string[]> {
  const client = await pool.connect();
  const refused: string[] = [];
  for (const text of texts) {
    await client.query(`prepare example as ${text}`).then(
      () => client.query("deallocate example"),
      (error: Error) => refused.push(`${error.message}: ${text}`),
    );
  }
  client.release();
  return refused;
}
