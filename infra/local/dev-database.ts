// The database of `npm run dev`: its data directory, its port and its schema.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import pg from "pg";
import { migrate } from "../../src/cli/migrate.ts";
import { ChangedFileError } from "../../src/cli/migration-state.ts";
import { defaultSchema } from "../../src/core/schema-name.ts";
import { isFree } from "./ports.ts";
import { DirectoryInUse, type PostgresServer, startPostgres } from "./postgres.ts";

export const databaseName = "sluice";

/** The lasting database keeps its port from run to run if it is free, so that connection strings stay valid. */
export async function openPostgres(options: {
  lasting: string;
  /** The file with the port that the lasting database had in the last run. */
  portFile: string;
  fresh: string;
  ephemeral: boolean;
  log: (line: string) => void;
}): Promise<PostgresServer> {
  const { lasting, portFile, fresh, ephemeral, log } = options;
  if (ephemeral) return startPostgres({ directory: fresh, ephemeral, log });
  try {
    const server = await startPostgres({ directory: lasting, log, ...(await keptPort(portFile)) });
    writeFileSync(portFile, String(server.port));
    return server;
  } catch (error) {
    if (!(error instanceof DirectoryInUse)) throw error;
    log(
      "Another `npm run dev` uses the data of this checkout. This run gets a fresh database and removes it at the end.",
    );
    return startPostgres({ directory: fresh, ephemeral: true, log });
  }
}

async function keptPort(portFile: string): Promise<{ port?: number }> {
  const port = existsSync(portFile) ? Number(readFileSync(portFile, "utf8")) : 0;
  return port > 0 && (await isFree(port)) ? { port } : {};
}

export async function migrateDatabase(postgres: PostgresServer): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url("postgres") });
  await client.connect();
  const findDatabase = "select from pg_database where datname = $1";
  const { rowCount } = await client.query(findDatabase, [databaseName]);
  if (rowCount === 0) await client.query(`create database ${databaseName}`);
  await client.end();
  const schema = process.env.SLUICE_SCHEMA ?? defaultSchema;
  await migrate({ databaseUrl: postgres.url(databaseName), schema }).catch((error: Error) => {
    throw error instanceof ChangedFileError ? new Error(explainOldSchema(error, postgres.directory)) : error;
  });
}

/** Before the first release 0001_tables.sql is edited in place. The user decides what to remove, as the jobs may matter. */
function explainOldSchema({ message }: Error, directory: string): string {
  return `${message}

An older checkout made your local database. Run one of these:
  rm -rf '${directory}'   deletes it; the next \`npm run dev\` makes a new one
  npm run dev -- --ephemeral     keeps it and uses a fresh one for this run`;
}
