// A real workerd with a deployment, which a test can kill as Cloudflare might. Miniflare restarts it by itself.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { convertV4MiniflareOptions, kCurrentWorker, Log, LogLevel, Miniflare } from "miniflare";
import { forWorkerd, nodeModules } from "./pg-bundle.ts";
import { childrenOf, cpuSecondsOf } from "./process-cpu.ts";

export interface Workerd {
  /** The URL of its fetch handler. */
  readonly url: string;
  /** The CPU time of its processes so far. */
  cpuSeconds(): number;
  /** Runs a round. Resolves to false if the round failed or its process was killed. */
  fire(cron: string): Promise<boolean>;
  isAnswering(options: { withinMs: number }): Promise<boolean>;
  /** Sends SIGKILL, so that nothing can be settled any more. */
  kill(): void;
  /** Waits until there is a process whose Worker answers. */
  started(): Promise<void>;
  stop(): Promise<void>;
}

const compatibilityDate = "2026-09-01";
const pollMs = 5;
const startsWithinMs = 60_000;

export async function startWorkerd(options: {
  /** The file whose default export is the Worker. */
  worker: string;
  bindings: Record<string, string>;
  /** Where the binding HYPERDRIVE leads to. Without it there is none. */
  hyperdriveUrl?: string;
  /** Binds the class SluiceClock of that file. */
  hasClock?: boolean;
}): Promise<Workerd> {
  const worker = await bundle(options.worker);
  const notOurs = new Set(workerdsOf(process.pid));
  const miniflare = keepingSignals(
    () =>
      new Miniflare(
        convertV4MiniflareOptions({
          name: "sluice",
          modules: true,
          script: worker,
          compatibilityDate,
          bindings: options.bindings,
          ...(options.hyperdriveUrl && { hyperdrives: { HYPERDRIVE: options.hyperdriveUrl } }),
          ...(options.hasClock && {
            durableObjects: { CLOCK: { className: "SluiceClock", useSQLite: true } },
          }),
          serviceBindings: { SELF: kCurrentWorker },
          cf: false,
          log: new Log(LogLevel.NONE),
          handleStructuredLogs: () => {},
        }),
      ),
  );
  const url = String(await miniflare.ready);
  let killed = Promise.withResolvers<false>();
  const own = () => workerdsOf(process.pid).filter((pid) => !notOurs.has(pid));

  return {
    url,
    cpuSeconds: () => own().reduce((sum, pid) => sum + cpuSecondsOf(pid), 0),
    fire(cron) {
      const round = async () => (await (await miniflare.getWorker()).scheduled({ cron })).outcome === "ok";
      // A request to a killed process may hang for ever, so kill() ends it too. It may fail at once, so a pause follows.
      return Promise.race([round().catch(() => sleep(pollMs, false)), killed.promise]);
    },
    isAnswering({ withinMs }) {
      const answer = miniflare.dispatchFetch("https://sluice.example/health").then(
        (response) => response.ok,
        () => false,
      );
      return Promise.race([answer, sleep(withinMs, false)]);
    },
    kill() {
      for (const pid of own()) {
        process.kill(pid, "SIGKILL");
        notOurs.add(pid); // it still exists for a moment
      }
      killed.resolve(false);
      killed = Promise.withResolvers<false>();
    },
    async started() {
      const giveUpAt = Date.now() + startsWithinMs;
      for (; own().length === 0; await sleep(pollMs)) {
        if (Date.now() > giveUpAt) throw new Error("workerd was not started again");
      }
      await miniflare.ready;
    },
    stop: () => miniflare.dispose(),
  };
}

/** If the process handles a signal itself, Miniflare must not end the process before that handler has ended. */
function keepingSignals<T>(start: () => T): T {
  const handled = (["SIGINT", "SIGTERM", "SIGHUP"] as const)
    .map((signal) => ({ signal, listeners: new Set(process.listeners(signal)) }))
    .filter(({ listeners }) => listeners.size > 0);
  const started = start();
  for (const { signal, listeners } of handled)
    for (const listener of process.listeners(signal))
      if (!listeners.has(listener)) process.off(signal, listener);
  return started;
}

async function bundle(entry: string): Promise<string> {
  const { outputFiles } = await build({ ...forWorkerd, entryPoints: [entry], plugins: [nodeModules] });
  return outputFiles[0]?.text ?? "";
}

/** The live workerds that this process started. Others are never touched. */
function workerdsOf(pid: number): number[] {
  return childrenOf(pid).filter(isLiveWorkerd);
}

function isLiveWorkerd(pid: number): boolean {
  try {
    const [, name, state] = /\((.*)\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return name === "workerd" && state !== "Z";
  } catch {
    return false; // it has just ended
  }
}
