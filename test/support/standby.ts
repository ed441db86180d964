// A primary and a standby that streams from it. The standby starts from a copy of the primary's data directory.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { migrate } from "../../src/cli/migrate.ts";
import { type PostgresServer, startPostgres } from "../../src/local/postgres.ts";

export interface Pair {
  primary: PostgresServer;
  standby: PostgresServer;
  stop(): Promise<void>;
}

const settings = { fsync: "off", wal_level: "replica", hot_standby: "on" };

export async function startPair(): Promise<Pair> {
  const base = mkdtempSync(join(tmpdir(), "sluice-standby-"));
  const first = await startPostgres({ directory: join(base, "primary"), settings });
  await migrate({ databaseUrl: first.url("postgres") });
  await first.stop();
  const copy = `${first.directory}-standby`;
  execFileSync("cp", ["-a", first.directory, copy]);
  // The file is empty. It needs an owner who may remove it.
  copyFileSync(join(copy, "PG_VERSION"), join(copy, "standby.signal"));

  const primary = await startPostgres({ directory: first.directory, settings });
  const standby = await startPostgres({ directory: copy, settings });
  await query(
    standby,
    `alter system set primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=sluice'`,
  );
  await query(standby, "select pg_reload_conf()");
  return {
    primary,
    standby,
    async stop() {
      await Promise.all([primary.stop(), standby.stop()]);
      for (const directory of [base, first.directory, copy])
        rmSync(directory, { recursive: true, force: true });
    },
  };
}

export async function query<Row extends pg.QueryResultRow>(
  server: PostgresServer,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: server.url("postgres") });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}
