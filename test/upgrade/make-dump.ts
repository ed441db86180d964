// `npm run dump`: writes the dump of this checkout's schema, with jobs in every state, under the version of package.json.
// Run it when a release is tagged. Until the first release is tagged it may replace the file.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { migrate } from "../../src/cli/migrate.ts";
import { startPostgres } from "../../src/local/postgres.ts";
import { createPgDatabase } from "../support/test-database.ts";
import { makeDump } from "./dump.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
const file = new URL(`${version}.sql`, import.meta.url);
const directory = mkdtempSync(join(tmpdir(), "sluice-dump-"));
const postgres = await startPostgres({ directory: join(directory, "postgres"), ephemeral: true });
try {
  const url = postgres.url("postgres");
  await migrate({ databaseUrl: url });
  const pool = new pg.Pool({ connectionString: url });
  writeFileSync(file, await makeDump({ ...createPgDatabase(pool), pool, url }));
  await pool.end();
  console.log(`wrote test/upgrade/${version}.sql`);
} finally {
  await postgres.stop();
  rmSync(directory, { recursive: true, force: true });
}
