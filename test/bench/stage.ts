// Where the systems meet: one PostgreSQL that waits for its disk as a real one does, and for each trial a new database,
// cloned from the one in which the system was installed.
import { join } from "node:path";
import { startPostgres } from "../../infra/local/postgres.ts";
import { familyCpuSecondsOf } from "../support/process-cpu.ts";
import { openPool } from "./systems/connections.ts";
import type { System } from "./systems/system.ts";

export interface Stage {
  readonly settings: Record<string, string>;
  serverVersion(): Promise<string>;
  /** What the server has used of the CPU so far, with all its processes. A busy machine does not change it much. */
  serverCpuSeconds(): number;
  install(system: System): Promise<void>;
  /** Runs the work in a new database of the system's, and drops it. */
  withDatabase<T>(system: System, work: (url: string) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** What is not the default. No checkpoint falls into one system's trial and spares another's. */
const settings = {
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  max_connections: "200",
  shared_buffers: "1GB",
  max_wal_size: "16GB",
  checkpoint_timeout: "1h",
};

/** Its data is gone when it is closed. */
export async function openStage(directory: string): Promise<Stage> {
  // The settings win over those of an ephemeral server, which would not wait for the disk.
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
