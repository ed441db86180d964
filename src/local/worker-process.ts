// Runs a Worker in workerd: `wrangler dev` of its folder, with its settings and the stack's bindings.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { spawnGuarded } from "./guard.ts";
import { installed } from "./installed.ts";
import { createOutputFilter } from "./worker-output.ts";

export interface WorkerProcess {
  url: string;
  /** Resolves to a text that says why the process ended. */
  exited: Promise<string>;
  stop(): Promise<void>;
}

const readyWithinMs = 60_000;
const pollMs = 50;
const keptLines = 20;
/**
 * wrangler runs two workerds and restarts one that crashes. If the Worker's own crashed, it answers again within a
 * second. If the one in front of it crashed, requests hang for ever.
 */
const crashNotice = "The Workers runtime crashed unexpectedly";
const recoverWithinMs = 3_000;

/** Returns when the Worker has answered its first request. */
export async function startWorker(options: {
  /** The folder of the Worker. */
  root: string;
  /** The file with wrangler's settings. */
  config: string;
  port: number;
  /** More arguments of `wrangler dev`. */
  wranglerArguments: string[];
  bindings: Record<string, string>;
  runDirectory: string;
  /** Where the clock keeps its times. It lasts as long as the database. */
  stateDirectory: string;
  log: (line: string) => void;
}): Promise<WorkerProcess> {
  const { port, bindings, runDirectory, log } = options;
  const url = `http://127.0.0.1:${port}`;
  const wrangler = spawnGuarded(process.execPath, wranglerArguments(options), {
    cwd: options.root,
    env: { ...wranglerEnvironment(runDirectory), ...bindings },
    stopSignals: ["TERM"],
  });
  const last: string[] = [];
  const hung = Promise.withResolvers<string>();
  const show = createOutputFilter(log);
  for (const stream of [wrangler.stdout, wrangler.stderr]) {
    createInterface({ input: stream }).on("line", async (line) => {
      last.push(stripVTControlCharacters(line));
      last.splice(0, last.length - keptLines);
      show(line);
      if (line.includes(crashNotice) && !(await answers(url, recoverWithinMs)))
        hung.resolve("lost workerd, and wrangler could not restart it");
    });
  }
  await untilAnswering(url, wrangler.exited, last);
  return { url, exited: Promise.race([wrangler.exited, hung.promise]), stop: wrangler.stop };
}

async function untilAnswering(url: string, exited: Promise<string>, last: string[]) {
  let ended: string | undefined;
  exited.then((reason) => {
    ended = reason;
  });
  const giveUpAt = Date.now() + readyWithinMs;
  while (Date.now() < giveUpAt) {
    if (ended !== undefined) throw new Error(`wrangler dev ${ended}`);
    if (await answers(url, giveUpAt - Date.now())) return;
    await sleep(pollMs);
  }
  const seconds = readyWithinMs / 1000;
  throw new Error(
    `the Worker did not answer within ${seconds} s; wrangler's last output:\n${last.join("\n")}`,
  );
}

/** True for any status, because only the Worker answers. */
async function answers(url: string, withinMs: number): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(Math.max(withinMs, 1));
    await (await fetch(`${url}/health`, { signal })).text();
    return true;
  } catch {
    return false;
  }
}

function wranglerArguments(options: {
  root: string;
  config: string;
  port: number;
  wranglerArguments: string[];
  runDirectory: string;
  stateDirectory: string;
}): string[] {
  const { port, runDirectory, stateDirectory } = options;
  const envFile = join(runDirectory, "empty.env");
  writeFileSync(envFile, "");
  return [
    ...["--no-warnings", installed("wrangler", options.root), "dev"],
    ...["--config", options.config, "--ip", "127.0.0.1", "--port", String(port)],
    // Any free port, because another run may use the default 9229.
    ...["--inspector-port", "0", "--show-interactive-dev-session", "false"],
    ...["--persist-to", stateDirectory],
    // Replaces .dev.vars and .env, which would override the bindings. What they say is among the bindings.
    ...["--env-file", envFile],
    ...options.wranglerArguments,
  ];
}

/**
 * The whole environment of wrangler, because all of it becomes bindings. This way any value arrives unchanged, which a
 * .env file with its quoting cannot promise, and no value shows up in the list of processes.
 */
function wranglerEnvironment(runDirectory: string): Record<string, string> {
  return {
    CLOUDFLARE_INCLUDE_PROCESS_ENV: "true",
    PATH: process.env.PATH ?? "",
    TMPDIR: runDirectory,
    // The user's home may not be writable.
    HOME: runDirectory,
    XDG_CONFIG_HOME: join(runDirectory, "config"),
    WRANGLER_REGISTRY_PATH: join(runDirectory, "registry"),
    WRANGLER_CACHE_DIR: join(runDirectory, "cache"),
    WRANGLER_WRITE_LOGS: "false",
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_SEND_ERROR_REPORTS: "false",
    WRANGLER_HIDE_BANNER: "true",
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
    X_LOCAL_EXPLORER: "false",
    X_LOCAL_OBSERVABILITY: "false",
    FORCE_COLOR: "0",
  };
}
