// The engine works on the oldest PostgreSQL that is supported. The tests run only where its programs are installed.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import type { PostgresServer } from "../../src/local/postgres.ts";
import { startServer, systemPrograms } from "../support/postgres-versions.ts";
import { createPgDatabase } from "../support/test-database.ts";
import { wholeLife } from "../support/whole-life.ts";

const bin = systemPrograms(15);

describe.runIf(bin)("on PostgreSQL 15 of the system's packages", () => {
  let server: PostgresServer;
  let pool: pg.Pool;

  beforeAll(async () => {
    server = await startServer(bin ? { bin } : {});
    const url = server.url("postgres");
    pool = new pg.Pool({ connectionString: url, max: 8 });
    pool.on("error", () => {}); // the server stops before all connections have closed
    await migrate({ databaseUrl: url });
  }, 60_000);
  afterAll(async () => {
    await pool?.end();
    await server?.stop();
  });

  test("jobs pass through every state", async () => {
    const { rows } = await pool.query("show server_version");
    expect(rows[0].server_version).toMatch(/^15\./);
    await wholeLife(createPgDatabase(pool));
  });

  test.each([
    { tags: "null", tagged: 0 },
    { tags: "'{t}'", tagged: 20_000 },
  ])(
    "ids are UUIDs of version 7 with the current time, in order within a batch with tags $tags",
    {
      timeout: 30_000,
    },
    async ({ tags, tagged }) => {
      const { rows } = await pool.query(`
      select count(*)::int as jobs, count(distinct id)::int as apart,
             bool_and(id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]') as is_version_7,
             bool_and(abs(extract(epoch from sluice.time_of_id(id) - now())) < 60) as is_now,
             array_agg(id order by place) = array_agg(id order by id) as is_sorted
      from sluice.enqueue_many('many', array_fill('{}'::jsonb, array[20000]), tags => ${tags})
        with ordinality as made(id, place)`);
      expect(rows).toEqual([
        { jobs: 20_000, apart: 20_000, is_version_7: true, is_now: true, is_sorted: true },
      ]);
      const { rows: counted } = await pool.query(
        "select count(*)::int as count from sluice.job_tag where tag = 't'",
      );
      expect(counted).toEqual([{ count: tagged }]);
    },
  );
});
