// One PostgreSQL for all systems, which waits for its disk as in production. Each trial gets a new database, cloned from
// the one in which the system was installed.
import { join } from "node:path";
import { startPostgres } from "../../src/local/postgres.ts";
import { familyCpuSecondsOf } from "../support/process-cpu.ts";
import { openPool } from "./systems/connections.ts";
import type { System } from "./systems/system.ts";

export interface Stage {
  readonly settings: Record<string, string>;
  serverVersion(): Promise<string>;
  /** The CPU time of the server and all its processes so far. Other load on the machine changes it little. */
  serverCpuSeconds(): number;
  install(system: System): Promise<void>;
  /** Runs the work in a new database of the system, and then drops the database. */
  withDatabase<T>(system: System, work: (url: string) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Settings that differ from the defaults. They keep checkpoints out of all trials. */
const settings = {
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  max_connections: "200",
  shared_buffers: "1GB",
  max_wal_size: "16GB",
  checkpoint_timeout: "1h",
};

/** Its data is removed when it is closed. */
export async function openStage(directory: string): Promise<Stage> {
  // These settings override those of an ephemeral server, which would not wait for the disk.
  const postgres = await startPostgres({ directory: join(directory, "postgres"), ephemeral: true, settings });
  return { ...(await stageOn(postgres.url("postgres"), settings)), close: () => postgres.stop() };
}

export async function stageOn(adminUrl: string, given: Record<string, string> = {}): Promise<Stage> {
  const admin = openPool(adminUrl, 1);
  const run = `bench_${process.pid}`;
  const urlOf = (database: string) => adminUrl.replace(/[^/]+$/, database);
  const templateOf = ({ name }: System) => `${run}_${name.replaceAll("-", "_")}`;
  const templates: string[] = [];
  let trials = 0;
  const { rows } = await admin.query("select pg_read_file('postmaster.pid') as file");
  const serverPid = Number.parseInt(rows[0].file, 10);
  return {
    settings: given,
    async serverVersion() {
      const { rows } = await admin.query("show server_version");
      return rows[0].server_version;
    },
    serverCpuSeconds: () => familyCpuSecondsOf(serverPid),
    async install(system) {
      const template = templateOf(system);
      await admin.query(`create database ${template}`);
      templates.push(template);
      await system.install(urlOf(template));
    },
    async withDatabase(system, work) {
      const name = `${run}_trial_${++trials}`;
      await admin.query(`create database ${name} template ${templateOf(system)}`);
      try {
        return await work(urlOf(name));
      } finally {
        await admin.query(`drop database ${name} with (force)`);
      }
    },
    async close() {
      for (const template of templates) await admin.query(`drop database ${template} with (force)`);
      await admin.end();
    },
  };
}
