// The Worker in workerd: `wrangler dev` on the repository's own wrangler.toml, told nothing but its bindings.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { checkout } from "./dev-directory.ts";
import { spawnGuarded } from "./guard.ts";
import { createOutputFilter } from "./worker-output.ts";

export interface WorkerProcess {
  url: string;
  /** Why it ended, in words. */
  exited: Promise<string>;
  stop(): Promise<void>;
}

const readyWithinMs = 60_000;
const pollMs = 50;
const keptLines = 20;
/**
 * wrangler runs two workerds and starts either again. After the Worker's own all is well within a second; after the
 * one in front of it, requests hang for ever.
 */
const crashNotice = "The Workers runtime crashed unexpectedly";
const recoverWithinMs = 3_000;

/** Returns when the Worker has answered its first request. */
export async function startWorker(options: {
  port: number;
  bindings: Record<string, string>;
  runDirectory: string;
  log: (line: string) => void;
}): Promise<WorkerProcess> {
  const { port, bindings, runDirectory, log } = options;
  const url = `http://127.0.0.1:${port}`;
  const wrangler = spawnGuarded(process.execPath, wranglerArguments(port, runDirectory), {
    cwd: checkout,
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
        hung.resolve("lost workerd, and wrangler could not bring it back");
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

/** Any status will do: it is the Worker's. */
async function answers(url: string, withinMs: number): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(Math.max(withinMs, 1));
    await (await fetch(`${url}/health`, { signal })).text();
    return true;
  } catch {
    return false;
  }
}

function wranglerArguments(port: number, runDirectory: string): string[] {
  const envFile = join(runDirectory, "empty.env");
  writeFileSync(envFile, "");
  return [
    ...["--no-warnings", createRequire(import.meta.url).resolve("wrangler"), "dev"],
    ...["--config", join(checkout, "wrangler.toml"), "--ip", "127.0.0.1", "--port", String(port)],
    // Any free one: the usual 9229 may be another run's.
    ...["--inspector-port", "0", "--show-interactive-dev-session", "false"],
    ...["--persist-to", join(runDirectory, "state")],
    // In place of .dev.vars and .env, which would win over the bindings.
    ...["--env-file", envFile],
  ];
}

/**
 * The whole environment of wrangler, since all of it becomes bindings: that way values arrive exactly, whatever is
 * in them (a .env file has no quoting that holds everything), and no one sees them in the list of processes.
 */
function wranglerEnvironment(runDirectory: string): Record<string, string> {
  return {
    CLOUDFLARE_INCLUDE_PROCESS_ENV: "true",
    PATH: process.env.PATH ?? "",
    TMPDIR: runDirectory,
    // Nothing is written to the user's home, which need not be writable.
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
