// A real workerd with a deployment in it, that can be killed as the platform might: Miniflare starts it again by itself.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { convertV4MiniflareOptions, kCurrentWorker, Log, LogLevel, Miniflare } from "miniflare";
import { childrenOf, cpuSecondsOf } from "./process-cpu.ts";

export interface Workerd {
  /** Where its fetch handler answers. */
  readonly url: string;
  /** What its processes have used of the CPU so far. */
  cpuSeconds(): number;
  /** True when the round ended well; false when it failed, or its process was killed. */
  fire(cron: string): Promise<boolean>;
  isAnswering(options: { withinMs: number }): Promise<boolean>;
  /** SIGKILL, without a chance to settle anything. */
  kill(): void;
  /** Until there is a process again; its Worker answers from then on. */
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
      // What was sent to a process that is killed may hang for ever, or fail at once: nothing may come back too fast.
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
        notOurs.add(pid); // it is there for a moment yet
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

/** Where a signal is handled already, Miniflare must not end the process before that handler is through. */
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
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*", "cloudflare:*"],
    write: false,
    logLevel: "error",
  });
  return outputFiles[0]?.text ?? "";
}

/** The live workerds that a process started itself: nobody else's is ever touched. */
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
