// The files that `sluice init` starts from: the folder templates/ of the package.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of Sluice's own package.json: of this repository, or of the installed package. */
function findPackage(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "templates"))) folder = dirname(folder);
  return folder;
}

export function readTemplate(name: string): string {
  return readFileSync(join(findPackage(), "templates", name), "utf8");
}

export function readOwnManifest(): { version: string; peerDependencies: Record<string, string> } {
  return JSON.parse(readFileSync(join(findPackage(), "package.json"), "utf8"));
}
