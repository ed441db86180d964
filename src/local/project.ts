// The folder in which `sluice dev` runs: wrangler's settings, and the user's own variables.
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { readCrons } from "./crons.ts";

export interface Project {
  root: string;
  /** The file with wrangler's settings. */
  config: string;
  crons: string[];
  /** The variables of .dev.vars, or of .env if there is none: as wrangler does it. */
  variables: Record<string, string>;
  transport: "neon" | "pg";
}

/** wrangler takes the first of these. */
export const configNames = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];

export function openProject(root: string, wanted: string | undefined): Project {
  const config = wanted === undefined ? findConfig(root) : resolve(root, wanted);
  if (config === undefined)
    throw new Error(
      `there is no ${configNames.join(", ")} in ${root}. \`npx sluice init\` writes one; \`--config FILE\` names another`,
    );
  if (!existsSync(config)) throw new Error(`there is no file ${config}`);
  const settings = readFileSync(config, "utf8");
  const transport = hasHyperdrive(settings) ? "pg" : "neon";
  return { root, config, crons: readCrons(settings), variables: readVariables(root), transport };
}

/** Comments of both formats are left out. */
export function hasHyperdrive(settings: string): boolean {
  return /^(?!\s*(#|\/\/)).*binding"?\s*[=:]\s*"HYPERDRIVE"/m.test(settings);
}

export function findConfig(root: string): string | undefined {
  return configNames.map((name) => join(root, name)).find(existsSync);
}

function readVariables(root: string): Record<string, string> {
  const file = [".dev.vars", ".env"].map((name) => join(root, name)).find(existsSync);
  return file ? (parseEnv(readFileSync(file, "utf8")) as Record<string, string>) : {};
}
