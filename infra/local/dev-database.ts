// The database of `npm run dev`: which data it runs on, and its schema.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import pg from "pg";
import { migrate } from "../../src/cli/migrate.ts";
import { ChangedFileError } from "../../src/cli/migration-state.ts";
import { defaultSchema } from "../../src/core/schema-name.ts";
import { isFree } from "./ports.ts";
import { DirectoryInUse, type PostgresServer, startPostgres } from "./postgres.ts";

export const databaseName = "sluice";

/** A lasting database keeps its port from run to run, unless that is taken: connection strings go on working. */
export async function openPostgres(options: {
  lasting: string;
  /** The file that says which port the lasting one had. */
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
    log("another `npm run dev` holds this checkout's data: here is a fresh database, removed at the end");
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
  const known = "select from pg_database where datname = $1";
  const { rowCount } = await client.query(known, [databaseName]);
  if (rowCount === 0) await client.query(`create database ${databaseName}`);
  await client.end();
  const schema = process.env.SLUICE_SCHEMA ?? defaultSchema;
  await migrate({ databaseUrl: postgres.url(databaseName), schema }).catch((error: Error) => {
    throw error instanceof ChangedFileError ? new Error(wayOut(error, postgres.directory)) : error;
  });
}

/** Before the first release the tables' file is edited in place. Nothing is removed here: the jobs may be wanted. */
function wayOut({ message }: Error, directory: string): string {
  return `${message}

Your local database was made by an older checkout. Either
  rm -rf '${directory}'   deletes it: the next \`npm run dev\` makes a new one
  npm run dev -- --ephemeral     leaves it alone and uses a fresh one for this run`;
}
