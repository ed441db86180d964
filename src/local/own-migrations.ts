// Runs the user's own migrations: a command that gets the local database as DATABASE_URL.
import { createInterface } from "node:readline";
import { spawnGuarded } from "./guard.ts";

export async function runOwnMigrations(options: {
  command: string;
  root: string;
  env: Record<string, string>;
  log: (line: string) => void;
}): Promise<void> {
  const { command, root, env, log } = options;
  const inherited = process.env as Record<string, string>;
  const shell = spawnGuarded("/bin/sh", ["-c", command], {
    cwd: root,
    env: { ...inherited, ...env },
    stopSignals: ["TERM"],
  });
  for (const stream of [shell.stdout, shell.stderr]) createInterface({ input: stream }).on("line", log);
  const reason = await shell.exited;
  if (reason !== "ended with code 0") throw new Error(`your migrations (${command}) ${reason}`);
}
