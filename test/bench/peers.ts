// Installs the peers' packages from test/bench/package.json: when the bench first needs them, and again when the lock
// file has changed. The product does not depend on them.
import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const directory = import.meta.dirname;

export function installPeers(log: (line: string) => void): void {
  const installed = statSync(join(directory, "node_modules/.package-lock.json"), { throwIfNoEntry: false });
  if (installed && installed.mtimeMs >= statSync(join(directory, "package-lock.json")).mtimeMs) return;
  log("installing the peers: npm ci --prefix test/bench");
  const { status, stderr } = spawnSync("npm", ["ci", "--prefix", directory, "--no-audit", "--no-fund"], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the peers could not be installed:\n${stderr}`);
}

export function packageFile(name: string, path: string): string {
  return join(directory, "node_modules", name, path);
}

export function versionOf(name: string): string {
  const { version } = JSON.parse(readFileSync(packageFile(name, "package.json"), "utf8"));
  return String(version);
}

/** The caller declares the types that it uses, so that a type check does not need the peers. */
export async function loadPeer<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}
