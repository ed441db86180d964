// Processes of a dependent: any command, and `sluice dev`.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { DevJson } from "../../src/local/dev-directory.ts";
import { freePort } from "../../src/local/ports.ts";

export interface Started {
  output(): string;
  hasEnded(): boolean;
  /** Resolves to the exit code. */
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** The first start makes the cluster and the bundle, maybe beside other tests. */
const readyWithinMs = 120_000;

export function start(cwd: string, command: string[], env: Record<string, string> = {}): Started {
  const [file = "", ...args] = command;
  const child = spawn(file, args, { cwd, env: { ...process.env, ...env } });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => (output += text));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  return {
    output: () => output,
    hasEnded: () => child.exitCode !== null,
    stop(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

/** Starts `sluice dev`, and waits until it is ready. `stop` stops it as Ctrl-C does. */
export async function startDev(
  folder: string,
  flags: string[],
  port?: number,
): Promise<{ stack: DevJson; output(): string; stop(): Promise<number | null> }> {
  const bin = join(folder, "node_modules/.bin/sluice");
  const dev = start(folder, [bin, "dev", "--port", String(port ?? (await freePort())), ...flags]);
  const stop = () => dev.stop("SIGINT");
  const devJson = join(folder, ".sluice/dev.json");
  const giveUpAt = Date.now() + readyWithinMs;
  while (!existsSync(devJson)) {
    if (dev.hasEnded() || Date.now() > giveUpAt) {
      await stop();
      throw new Error(`sluice dev is not ready:\n${dev.output()}`);
    }
    await sleep(50);
  }
  return { stack: JSON.parse(readFileSync(devJson, "utf8")), output: dev.output, stop };
}
