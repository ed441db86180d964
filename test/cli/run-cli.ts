// Starts `sluice` as a user does, as a process of its own, with an environment that has nothing of the developer's. It is
// built first, as a package has it, and Node keeps what it has compiled: reading the sources takes most of a second.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll } from "vitest";

export interface CliOptions {
  env?: Record<string, string>;
  /** What it reads from the standard input. */
  input?: string;
  cwd?: string;
}

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface CliRun {
  pid: number;
  stdout(): string;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  ended: Promise<Ended>;
}

const root = join(import.meta.dirname, "../..");
let main = "";

/** Call it at the top of a file. */
export function useCli(): void {
  let directory: string;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "sluice-cli-"));
    for (const name of ["node_modules", "migrations"]) symlinkSync(join(root, name), join(directory, name));
    const outdir = join(directory, "dist/lib/cli");
    await build({
      entryPoints: [join(root, "src/cli/main.ts")],
      ...{ outdir, bundle: true, splitting: true, format: "esm", packages: "external", platform: "node" },
      outExtension: { ".js": ".mjs" },
    });
    main = join(outdir, "main.mjs");
  }, 60_000);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
}

export function mainFile(): string {
  return main;
}

export function startCli(
  args: readonly string[],
  { env = {}, input = "", cwd = tmpdir() }: CliOptions = {},
): CliRun {
  const { PATH = "" } = process.env;
  const NODE_COMPILE_CACHE = join(dirname(main), "cache");
  const child = spawn(process.execPath, [main, ...args], { cwd, env: { PATH, NODE_COMPILE_CACHE, ...env } });
  const text = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      text[name] += chunk;
    });
  child.stdin.on("error", () => {}); // it may end without reading
  child.stdin.end(input);
  return {
    pid: child.pid ?? 0,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    kill: (signal) => void child.kill(signal),
    ended: new Promise((resolve) => child.on("close", (code) => resolve({ code, ...text }))),
  };
}

export function runCli(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  return startCli(args, options).ended;
}

export async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = Date.now() + 30_000;
  while (!(await isTrue())) {
    if (Date.now() > giveUpAt) throw new Error(`waited 30 s until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
