// Starts `npm run dev` as a user does, but with its own `.sluice` directory, so that it does not touch a developer's run.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DevJson } from "../../src/local/dev-directory.ts";

export interface DevRun {
  pid: number;
  exitCode: Promise<number | null>;
  output(): string;
  ready(): Promise<DevJson>;
  kill(signal: NodeJS.Signals): void;
  /** Sends a signal to every process of the group, as a terminal does. */
  pressCtrlC(): void;
  /** The live processes that this run has started. */
  descendants(): Process[];
}

export interface Process {
  pid: number;
  parent: number;
  command: string;
}

const patienceMs = 30_000;
const pollMs = 50;
const started: DevRun[] = [];

export function startDev(
  flags: string[],
  options: { directory: string; env?: Record<string, string> },
): DevRun {
  const env = { ...process.env, ...options.env, DEV_DIRECTORY: options.directory };
  const stdio = ["ignore", "pipe", "pipe"] as const;
  const child = spawn("npm", ["run", "dev", "--", ...flags], { env, stdio: [...stdio], detached: true });
  const pid = child.pid ?? 0;
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  }
  const run: DevRun = {
    pid,
    exitCode: new Promise((resolve) => child.on("close", (code) => resolve(code))),
    output: () => text,
    kill: (signal) => process.kill(pid, signal),
    pressCtrlC: () => process.kill(-pid, "SIGINT"),
    descendants: () => descendantsOf(pid, processes()),
    async ready() {
      await until("npm run dev is ready", () => {
        if (child.exitCode !== null) throw new Error("npm run dev ended");
        return run.descendants().some(({ pid }) => readDevJson(options.directory)?.pid === pid);
      }).catch((error: Error) => {
        throw new Error(`${error.message}; its output:\n${text}`);
      });
      return readDevJson(options.directory) as DevJson;
    },
  };
  started.push(run);
  return run;
}

/** For afterEach, so that a failed test leaves nothing running. */
export async function endAllRuns(): Promise<void> {
  for (const run of started.splice(0)) {
    for (const { pid, command } of run.descendants()) {
      if (command.includes("cli/main.ts dev")) process.kill(pid, "SIGTERM");
    }
    await run.exitCode;
  }
}

/** The processes that still run. It compares commands too, because a pid may have been reused. */
export function stillRunning(before: Process[]): Process[] {
  const now = new Map(processes().map((found) => [found.pid, found.command]));
  return before.filter(({ pid, command }) => now.get(pid) === command);
}

export async function until(what: string, isTrue: () => boolean | Promise<boolean>) {
  const giveUpAt = Date.now() + patienceMs;
  while (!(await isTrue())) {
    if (Date.now() > giveUpAt) throw new Error(`waited ${patienceMs / 1000} s until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

function readDevJson(directory: string): DevJson | undefined {
  const path = join(directory, "dev.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

/** All processes except zombies. */
function processes(): Process[] {
  const lines = execFileSync("ps", ["-eo", "pid=,ppid=,stat=,args="], { encoding: "utf8" });
  return lines.split("\n").flatMap((line) => {
    const [, pid, parent, state, command] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    if (!command || state?.startsWith("Z")) return [];
    return [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

function descendantsOf(pid: number, all: Process[]): Process[] {
  const children = all.filter(({ parent }) => parent === pid);
  return children.flatMap((child) => [child, ...descendantsOf(child.pid, all)]);
}
