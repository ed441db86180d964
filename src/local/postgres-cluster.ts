// The data directory of the local Postgres. initdb makes it once, and its pid file says whether a server uses it.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { spawnGuarded } from "./guard.ts";
import { isRunning, removeLeftovers } from "./leftovers.ts";
import { makePrivateDirectory, type Owner } from "./postgres-owner.ts";

export interface ServerState {
  isLive: boolean;
  status: string;
  port: number;
}

const initdbFlags = [
  ...["--username=sluice", "--auth=trust", "--no-sync", "--no-instructions"],
  ...["--encoding=UTF8", "--locale=C"],
];
const builtinLocaleFlags = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
const builtinLocaleSince = 17;

/** initdb writes to another directory, which is renamed at the end, so that a killed initdb leaves no partial cluster. */
export async function makeCluster(options: {
  bin: string;
  directory: string;
  owner: Owner | undefined;
}): Promise<void> {
  const { bin, directory, owner } = options;
  if (existsSync(join(directory, "PG_VERSION"))) return;
  removeLeftovers(dirname(directory), `${basename(directory)}.new-`);
  const unfinished = `${directory}.new-${process.pid}`;
  makePrivateDirectory(unfinished, owner);
  const initdb = spawnGuarded(`${bin}/initdb`, ["-D", unfinished, ...flagsOf(bin)], {
    cwd: unfinished,
    env: { PATH: process.env.PATH ?? "", LC_ALL: "C", TZ: "UTC" },
    stopSignals: ["TERM"],
    owner,
  });
  let output = "";
  for (const stream of [initdb.stdout, initdb.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const reason = await initdb.exited;
  if (reason !== "ended with code 0") {
    rmSync(unfinished, { recursive: true, force: true });
    throw new Error(`initdb ${reason}\n${output}`);
  }
  publish(unfinished, directory);
}

function flagsOf(bin: string): string[] {
  const version = execFileSync(`${bin}/initdb`, ["--version"], { encoding: "utf8" });
  const major = Number(/(\d+)/.exec(version)?.[1]);
  return major < builtinLocaleSince ? initdbFlags : [...initdbFlags, ...builtinLocaleFlags];
}

/** Undefined without a pid file. The file has the pid in line 1, the port in line 4 and the status in line 8. */
export function serverState(directory: string): ServerState | undefined {
  let lines: string[];
  try {
    lines = readFileSync(pidFile(directory), "utf8").split("\n");
  } catch {
    return undefined;
  }
  const isLive = isPostgres(Number(lines[0]));
  return { isLive, status: lines[7]?.trim() ?? "", port: Number(lines[3]) };
}

export function removePidFile(directory: string): void {
  rmSync(pidFile(directory), { force: true });
}

/** If two first runs start at once, one rename wins. The server's own lock decides which run may use the cluster. */
function publish(unfinished: string, directory: string): void {
  try {
    renameSync(unfinished, directory);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(join(directory, "PG_VERSION"))) throw error;
  }
}

function pidFile(directory: string): string {
  return join(directory, "postmaster.pid");
}

/** A pid may belong to another program by now, above all in a restarted container. So it checks the name if /proc exists. */
function isPostgres(pid: number): boolean {
  if (!isRunning(pid)) return false;
  const name = `/proc/${pid}/comm`;
  return existsSync(name) ? readFileSync(name, "utf8").startsWith("postgres") : true;
}
