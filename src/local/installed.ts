// Finds a package that a user's project has installed. Sluice itself does not bring it, because only `sluice dev` needs it.
import { createRequire } from "node:module";
import { join } from "node:path";

export function installed(name: string, root: string): string {
  try {
    return createRequire(join(root, "package.json")).resolve(name);
  } catch {
    throw new Error(`the package ${name} is not installed. Run: npm install --save-dev ${name}`);
  }
}
