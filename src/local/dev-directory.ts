// `.sluice/`: the files that `sluice dev` keeps between runs (data, port, admin key), and dev.json, which exists while it
// runs.
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { removeLeftovers } from "./leftovers.ts";
import { postgresOwner, reachableDirectory, removeDirectory } from "./postgres-owner.ts";

export interface DevJson {
  url: string;
  database_url: string;
  /** The URL where Neon's driver reaches that database (`neonConfig.fetchEndpoint`). */
  /** Only with `--transport neon`. */
  neon_endpoint?: string;
  admin_key: string;
  pid: number;
}

/** Returns the directory, after removing the files of killed runs. */
export function openDevDirectory(root: string): string {
  const directory = resolve(root, process.env.DEV_DIRECTORY ?? ".sluice");
  mkdirSync(directory, { recursive: true });
  removeLeftovers(directory, "run-");
  removeLeftovers(dirname(dataPath(directory, "postgres")), "ephemeral-");
  return directory;
}

/** The directories of one run: for wrangler's files, and for the data of an ephemeral run. */
export function makeRunDirectories(directory: string) {
  const run = join(directory, `run-${process.pid}`);
  const data = dataPath(directory, `ephemeral-${process.pid}`);
  mkdirSync(run, { mode: 0o700 });
  const remove = () => {
    rmSync(run, { recursive: true, force: true });
    removeDirectory(data);
  };
  return { run, data, remove };
}

/** Returns the same key in every run, so that scripts and browsers can keep it. */
export function keptAdminKey(directory: string): string {
  const path = join(directory, "admin-key");
  try {
    // "wx" fails if the file exists. So if two first runs start at once, one makes the key and the other reads it.
    const key = `sk_${randomBytes(32).toString("base64url")}`;
    writeFileSync(path, key, { flag: "wx", mode: 0o600 });
    return key;
  } catch {
    return readFileSync(path, "utf8").trim();
  }
}

/** Writes another file and renames it, so that a reader never sees half a file. */
export function writeDevJson(directory: string, content: DevJson): void {
  const unfinished = join(directory, `dev.json.${process.pid}`);
  writeFileSync(unfinished, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(unfinished, join(directory, "dev.json"));
}

/** Removes dev.json unless a second run in this checkout has written its own. */
export function removeOwnDevJson(directory: string): void {
  const path = join(directory, "dev.json");
  try {
    if (JSON.parse(readFileSync(path, "utf8")).pid === process.pid) rmSync(path);
  } catch {
    // There is no dev.json.
  }
}

function dataPath(directory: string, name: string): string {
  return reachableDirectory(join(directory, name), postgresOwner());
}
