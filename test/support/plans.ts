// The plan test for a queue of any size: every frequent call, with fresh statistics and with those of the empty tables.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { measure, type Scan, scansOf, watchStatements } from "./explain.ts";
import { hotCalls } from "./hot-calls.ts";
import { fillQueue, type QueueSize } from "./large-queue.ts";
import { useTestDatabase } from "./test-database.ts";

const largeTables = [
  "job",
  "ready",
  "scheduled",
  "done",
  "closed",
  "expiry",
  "idempotency",
  "failed_attempt",
  "job_tag",
];
/** Postgres plans the first calls for their parameters. The plans of the last two calls are those that it keeps. */
const rounds = 8;
/** inspect() chooses its rows at random. With a fixed seed it reads the same rows in each run. */
const seed = 0.1;
/** Before PostgreSQL 17 an index scan for a list of values starts at the root for each value. */
const factorBefore17 = 2;

export function describePlans(size: QueueSize, { fillWithinMs }: { fillWithinMs: number }): void {
  describe.each(["fresh", "stale"] as const)("with %s statistics", (statistics) => {
    const db = useTestDatabase();
    const client = new pg.Client({ connectionString: db.url });
    let watch: Awaited<ReturnType<typeof watchStatements>>;

    beforeAll(async () => {
      await client.connect();
      await keepAutovacuumOff(client);
      if (statistics === "stale") await client.query("analyze");
      await fillQueue(client, size);
      if (statistics === "fresh") await client.query("analyze");
      watch = await watchStatements(client);
    }, fillWithinMs);
    afterAll(() => client.end());

    test.each(hotCalls)(
      "$name touches at most $buffers buffers, uses its indexes and reads no whole table",
      async (call) => {
        const buffers: number[] = [];
        const scans: Scan[] = [];
        for (let round = 0; round < rounds; round++) {
          const values = await call.values(client);
          await client.query("select setseed($1)", [seed]);
          watch.take();
          buffers.push((await measure(client, call.text, values)).buffers);
          scans.push(...scansOf(watch.take()));
        }
        expect(scans.filter((scan) => scan.index === null && largeTables.includes(scan.relation))).toEqual(
          [],
        );
        expect(scans.map((scan) => scan.index)).toEqual(expect.arrayContaining([...call.indexes]));
        const most = await buffersOnServer(client, call.buffers);
        expect(Math.max(...buffers.slice(-2)), buffers.join(", ")).toBeLessThanOrEqual(most);
      },
    );
  });
}

/** What a limit for the newest version is on the server's version. */
export async function buffersOnServer(client: pg.ClientBase, buffers: number): Promise<number> {
  return (await serverVersion(client)) < 17 ? factorBefore17 * buffers : buffers;
}

async function serverVersion(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query("select current_setting('server_version_num')::int / 10000 as major");
  return rows[0].major;
}

async function keepAutovacuumOff(client: pg.ClientBase): Promise<void> {
  await client.query(`
    do $$
    declare v_table regclass;
    begin
      for v_table in
        select oid from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r'
      loop
        execute format('alter table %s set (autovacuum_enabled = off)', v_table);
      end loop;
    end $$`);
}
