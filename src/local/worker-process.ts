// Runs a Worker in workerd: `wrangler dev` of its folder, with its settings and the stack's bindings.
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { spawnGuarded } from "./guard.ts";
import { installed } from "./installed.ts";
import { hasHyperdrive } from "./project.ts";
import { add } from "./settings-text.ts";
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
  /** Where the binding HYPERDRIVE leads to. Undefined: there is none. */
  hyperdriveUrl: string | undefined;
  log: (line: string) => void;
}): Promise<WorkerProcess> {
  const { port, bindings, runDirectory, log } = options;
  const url = `http://127.0.0.1:${port}`;
  const wrangler = spawnGuarded(process.execPath, wranglerArguments(options), {
    cwd: options.root,
    env: {
      ...wranglerEnvironment(runDirectory),
      ...hyperdriveEnvironment(options.hyperdriveUrl),
      ...bindings,
    },
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
  hyperdriveUrl: string | undefined;
}): string[] {
  const { port, runDirectory, stateDirectory, hyperdriveUrl } = options;
  const envFile = join(runDirectory, "empty.env");
  writeFileSync(envFile, "");
  return [
    ...["--no-warnings", installed("wrangler", options.root), "dev"],
    ...["--config", hyperdriveUrl ? withHyperdrive(options, hyperdriveUrl) : options.config],
    ...["--ip", "127.0.0.1", "--port", String(port)],
    // Any free port, because another run may use the default 9229.
    ...["--inspector-port", "0", "--show-interactive-dev-session", "false"],
    ...["--persist-to", stateDirectory],
    // Replaces .dev.vars and .env, which would override the bindings. What they say is among the bindings.
    ...["--env-file", envFile],
    ...options.wranglerArguments,
  ];
}

/**
 * The settings with a Hyperdrive binding. If they have one, the environment says where it leads to. Otherwise a copy gets
 * one. It is in another directory, so `main` needs its full path.
 */
function withHyperdrive(
  { root, config, runDirectory }: { root: string; config: string; runDirectory: string },
  hyperdriveUrl: string,
): string {
  const text = readFileSync(config, "utf8");
  if (hasHyperdrive(text)) return config;
  const copy = join(runDirectory, basename(config));
  const withMain = text.replace(
    /^(\s*"?main"?\s*[=:]\s*)"(.*)"/m,
    (_, start: string, main: string) => `${start}${JSON.stringify(resolve(root, main))}`,
  );
  const binding = { binding: "HYPERDRIVE", id: "0".repeat(32), localConnectionString: hyperdriveUrl };
  writeFileSync(copy, add(withMain, { hyperdrive: [binding] }, config.endsWith(".toml") ? "toml" : "json"));
  return copy;
}

/** The second name is that of older versions of wrangler. */
function hyperdriveEnvironment(url: string | undefined): Record<string, string> {
  const name = "HYPERDRIVE_LOCAL_CONNECTION_STRING_HYPERDRIVE";
  return url ? { [`CLOUDFLARE_${name}`]: url, [`WRANGLER_${name}`]: url } : {};
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
