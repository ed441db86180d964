// A project that installs the packed package with npm, as users do. It needs the network.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../support/packed.ts";

const exec = promisify(execFile);

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

export interface Project {
  folder: string;
  install(...packages: string[]): Promise<void>;
  run(command: string, args: string[], env?: Record<string, string>): Promise<Ran>;
}

export function createProject(folder: string): Project {
  mkdirSync(folder, { recursive: true });
  const manifest = { name: "dependent", private: true, type: "module" };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  return openProject(folder);
}

/** A folder that has a package.json. */
export function openProject(folder: string): Project {
  const run: Project["run"] = (command, args, env = {}) =>
    exec(command, args, { cwd: folder, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 }).then(
      (result) => ({ code: 0, ...result }),
      (failed: Ran) => failed,
    );
  return {
    folder,
    run,
    async install(...packages) {
      const { code, stderr } = await run("npm", ["install", "--no-audit", "--no-fund", ...packages]);
      if (code !== 0) throw new Error(`npm install failed:\n${stderr}`);
    },
  };
}

export function copyApp(folder: string): void {
  cpSync(join(root, "test/dependents/app"), folder, { recursive: true });
}
