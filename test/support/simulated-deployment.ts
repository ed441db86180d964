// A deployment whose days pass in seconds: the deployable Worker and its clock in workerd, Neon's driver, the local proxy, and
// Postgres. Simulated are the time in workerd, and who fires the crons and the clock's alarm: here they are fired in the order of
// their times, each when the one before has ended. The time of Postgres is the real one. It only says how long something still
// takes, so a day without work is the same for it.
import { type NeonProxy, startNeonProxy } from "../../src/local/neon-proxy.ts";
import type { ClockStatus } from "./clock-worker.ts";
import { startWorkerd } from "./workerd.ts";

export interface SimulatedDeployment {
  proxy: NeonProxy;
  nowMs(): number;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  status(): Promise<ClockStatus>;
  /** Lets the time pass, with all crons and alarms. `everyMinute` is called between the crons of a minute and the next ones. */
  pass(minutes: number, everyMinute?: () => Promise<unknown>): Promise<Passed>;
  stop(): Promise<void>;
}

/** What the proxy got meanwhile. */
export interface Passed {
  requests: number;
  /** The part of all windows of five minutes that had a request. */
  shareOfWindows: number;
}

const minuteMs = 60_000;
const windowMs = 5 * minuteMs;
const crons = {
  drain: "* * * * *",
  even: "*/2 * * * *", // reap
  odd: "1-59/2 * * * *", // watch
};

export async function startSimulated(options: {
  databaseUrl: string;
  settings: Record<string, string>;
}): Promise<SimulatedDeployment> {
  const { databaseUrl, settings } = options;
  const proxy = await startNeonProxy({ postgresPort: Number(new URL(databaseUrl).port) });
  const workerd = await startWorkerd({
    worker: new URL("clock-worker.ts", import.meta.url).pathname,
    bindings: { DATABASE_URL: databaseUrl, SLUICE_NEON_ENDPOINT: proxy.endpoint, ...settings },
    hasClock: true,
  });
  // Alarms that are set lie ahead of the real time, so the platform fires none.
  let aheadMs = 24 * 60 * minuteMs;
  const nowMs = () => Date.now() + aheadMs;
  const send = async (query: string): Promise<ClockStatus> => {
    const response = await fetch(new URL(`/simulated?ahead=${aheadMs}${query}`, workerd.url));
    return (await response.json()) as ClockStatus;
  };
  const moveTo = (ms: number) => {
    aheadMs = Math.max(ms - Date.now(), aheadMs);
  };

  async function runCrons(minute: number): Promise<void> {
    for (const cron of [crons.drain, minute % 2 === 0 ? crons.even : crons.odd])
      if (!(await workerd.fire(cron))) throw new Error(`the round of "${cron}" failed`);
  }

  async function pass(minutes: number, everyMinute: () => Promise<unknown> = async () => {}) {
    const fromMs = nowMs();
    const endMs = fromMs + minutes * minuteMs;
    const from = proxy.requests();
    const touched = new Set<number>();
    for (;;) {
      const { alarmAtMs } = await send("");
      const cronMs = (Math.floor(nowMs() / minuteMs) + 1) * minuteMs;
      const nextMs = Math.min(cronMs, alarmAtMs ?? cronMs);
      if (nextMs > endMs) break;
      moveTo(nextMs);
      const before = proxy.requests();
      const atMs = nowMs();
      await send(alarmAtMs !== null && alarmAtMs < cronMs ? "&alarm" : "");
      if (alarmAtMs === null || alarmAtMs >= cronMs) {
        await runCrons(cronMs / minuteMs);
        await everyMinute();
      }
      if (proxy.requests() > before) touched.add(Math.floor((atMs - fromMs) / windowMs));
    }
    moveTo(endMs);
    await send("");
    return {
      requests: proxy.requests() - from,
      shareOfWindows: touched.size / Math.ceil((endMs - fromMs) / windowMs),
    };
  }

  await send("");
  return {
    proxy,
    nowMs,
    pass,
    fetch: (path, init) => fetch(new URL(path, workerd.url), { redirect: "manual", ...init }),
    status: () => send(""),
    async stop() {
      await workerd.stop();
      await proxy.close();
    },
  };
}
