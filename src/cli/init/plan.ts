// What `sluice init` would do to a folder: new files, additions to files that are there, and what is left to a person.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { findConfig } from "../../local/project.ts";
import { textOf } from "../../local/settings-text.ts";
import { planManifest } from "./package-json.ts";
import { readTemplate } from "./templates.ts";
import { newSettings, planSettings } from "./wrangler-settings.ts";

export interface Change {
  /** Relative to the folder. */
  path: string;
  /** What the file has now. Undefined: it does not exist. */
  before: string | undefined;
  after: string;
  /** What is added, for people. Empty for a new file. */
  added: string[];
  isSecret?: boolean;
}

export interface Plan {
  changes: Change[];
  /** Each is a text with a heading and lines to copy. */
  byHand: string[];
}

export function planInit(root: string): Plan {
  const read = (path: string) =>
    existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : undefined;
  const name = workerName(basename(root));
  const settings = planWrangler(root, name);
  const create = (path: string, template: string): Change[] =>
    read(path) === undefined ? [{ path, before: undefined, after: readTemplate(template), added: [] }] : [];
  const manifest = planManifest(read("package.json"), name);
  return {
    changes: [
      ...settings.changes,
      ...create("src/jobs.ts", "src/jobs.ts"),
      ...(settings.main === "src/worker.ts" ? create("src/worker.ts", "src/worker.ts") : []),
      ...create("tsconfig.json", "tsconfig.json"),
      ...(manifest
        ? [
            {
              path: "package.json",
              before: read("package.json"),
              after: manifest.text,
              added: manifest.added,
            },
          ]
        : []),
      ...withLines(".dev.vars", read(".dev.vars"), {
        SLUICE_ADMIN_KEY: `sk_${randomBytes(32).toString("base64url")}`,
      }),
      ...withLines(".gitignore", read(".gitignore"), ["node_modules", ".dev.vars", ".sluice/", ".wrangler/"]),
    ],
    byHand: [...settings.byHand, ...planEntry(settings.main, read(settings.main))],
  };
}

function planWrangler(root: string, name: string): { changes: Change[]; byHand: string[]; main: string } {
  const config = findConfig(root);
  if (!config) {
    const change = { path: "wrangler.jsonc", before: undefined, after: newSettings(name), added: [] };
    return { changes: [change], byHand: [], main: "src/worker.ts" };
  }
  const path = basename(config);
  const format = path.endsWith(".toml") ? "toml" : "json";
  const before = readFileSync(config, "utf8");
  const { text, added, byHand } = explained(path, () => planSettings(before, format, name));
  return {
    changes: text === undefined ? [] : [{ path, before, after: text, added }],
    byHand: byHand ? [`Add to ${path}, to what is there under the same names:\n\n${byHand.trimEnd()}`] : [],
    main: textOf(before, "main", format) ?? "src/worker.ts",
  };
}

function explained<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${path} cannot be read, and nothing was changed: ${(error as Error).message}`);
  }
}

/** A Worker that is there is not changed: only a person knows which requests are whose. */
function planEntry(main: string, text: string | undefined): string[] {
  if (text === undefined || /from ["']sluice(\/hyperdrive)?["']/.test(text)) return [];
  const snippet = readTemplate("into-your-worker.txt").trimEnd();
  return [`Add to ${main}, with your own handler in the place of app.fetch:\n\n${snippet}`];
}

/** Adds the lines, or the settings by name, that a file of lines does not have. */
function withLines(
  path: string,
  before: string | undefined,
  wanted: string[] | Record<string, string>,
): Change[] {
  const present = (before ?? "").split("\n").map((line) => line.trim().replace(/\/$/, ""));
  const missing = Array.isArray(wanted)
    ? wanted.filter((line) => !present.includes(line.replace(/\/$/, "")))
    : Object.entries(wanted)
        .filter(([name]) => !present.some((line) => line.replace(/^export\s+/, "").startsWith(`${name}=`)))
        .map(([name, value]) => `${name}=${value}`);
  if (missing.length === 0) return [];
  const start = before && !before.endsWith("\n") ? `${before}\n` : (before ?? "");
  const isSecret = !Array.isArray(wanted);
  const added = before === undefined ? [] : missing.map((line) => line.replace(/=.*/, ""));
  return [{ path, before, after: `${start}${missing.join("\n")}\n`, added, isSecret }];
}

/** Cloudflare's rule: small letters, digits and dashes. */
function workerName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 54)
    .replace(/^-+|-+$/g, "");
  return name || "my-worker";
}
