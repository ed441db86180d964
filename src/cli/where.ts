// Where Sluice is: the flags say it, or the environment, or the dev.json of a local stack that runs in this directory.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { usageError } from "./exit.ts";

export type Where =
  | { kind: "worker"; url: string; key: string; source: string }
  | { kind: "database"; databaseUrl: string; source: string };

interface WhereOptions {
  url?: string | undefined;
  key?: string | undefined;
  /** "" stands for the one of the environment. */
  database?: string | undefined;
}

const help = `say where Sluice is:
  SLUICE_URL and SLUICE_KEY, or --url and --key     the Worker's address and an API key
  --database                                        the database of DATABASE_URL, if the Worker is down
  npm run dev                                       a local stack, found by its .sluice/dev.json`;

export function findWhere(flags: WhereOptions, env: NodeJS.ProcessEnv, directory = process.cwd()): Where {
  if (flags.database !== undefined) return findDatabase(flags, env);
  const url = flags.url ?? env.SLUICE_URL;
  const key = flags.key ?? env.SLUICE_KEY;
  if (url) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw usageError(`${flags.url ? "--url" : "SLUICE_URL"} is not an http or https URL: ${url}`);
    if (!key) throw usageError("there is an address, but no key: set SLUICE_KEY, or give --key");
    return { kind: "worker", url, key, source: flags.url ? "--url" : "SLUICE_URL" };
  }
  const local = findLocalStack(directory);
  if (!local) throw usageError(help);
  return { kind: "worker", url: local.url, key: key ?? local.key, source: local.path };
}

function findDatabase({ url, database }: WhereOptions, env: NodeJS.ProcessEnv): Where {
  if (url !== undefined) throw usageError("use either --url or --database, not both");
  if (database) return { kind: "database", databaseUrl: database, source: "--database" };
  const name = env.SLUICE_DATABASE_URL ? "SLUICE_DATABASE_URL" : "DATABASE_URL";
  const databaseUrl = env[name];
  if (!databaseUrl)
    throw usageError(
      "--database needs a connection string: give one, or set SLUICE_DATABASE_URL or DATABASE_URL",
    );
  return { kind: "database", databaseUrl, source: name };
}

/** Looks in the directory and above it, as git does. A stack that was killed leaves its file behind. */
function findLocalStack(directory: string): { url: string; key: string; path: string } | undefined {
  for (let at = directory; ; at = dirname(at)) {
    const path = join(at, ".sluice", "dev.json");
    if (existsSync(path)) {
      const { url, admin_key: key, pid } = JSON.parse(readFileSync(path, "utf8"));
      if (isAlive(pid)) return { url, key, path };
    }
    if (at === dirname(at)) return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}
