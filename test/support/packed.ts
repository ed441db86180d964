// The package as npm makes it.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
export const root = join(import.meta.dirname, "../..");

interface Manifest {
  name: string;
  version: string;
  bin: { sluice: string };
  exports: Record<string, unknown>;
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional?: boolean }>;
}

export function manifestOf(directory: string): Manifest {
  return JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
}

/** Builds the library and packs it. Returns the file. */
export async function pack(into: string): Promise<string> {
  await run("npm", ["pack", "--silent", "--offline", "--pack-destination", into], { cwd: root });
  const { name, version } = manifestOf(root);
  return join(into, `${name}-${version}.tgz`);
}

/** Unpacks it where npm would, with links to this repository's copies of the packages that it needs. No network is used. */
export async function unpack(tarball: string, project: string): Promise<string> {
  const installed = join(project, "node_modules/sluice");
  mkdirSync(installed, { recursive: true });
  await run("tar", ["-xzf", tarball, "-C", installed, "--strip-components=1"]);
  const { dependencies, peerDependencies, peerDependenciesMeta } = manifestOf(installed);
  const peers = Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional);
  for (const dependency of [...Object.keys(dependencies), ...peers]) {
    const to = join(project, "node_modules", dependency);
    mkdirSync(dirname(to), { recursive: true });
    symlinkSync(join(root, "node_modules", dependency), to);
  }
  return installed;
}
