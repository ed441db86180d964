// Fires the Worker's crons, because `wrangler dev` does not. Those of a few minutes, such as Sluice's, fire now and at every
// tick. Others, such as a nightly one of the user, fire at the tick after their time. Skips a cron that is still running.
import { Cron } from "croner";

export interface Ticker {
  stop(): void;
}

const seldomMs = 5 * 60_000;

export function startTicker(options: {
  url: string;
  crons: string[];
  tickSeconds: number;
  log: (line: string) => void;
}): Ticker {
  const { url, crons, tickSeconds, log } = options;
  const stopped = new AbortController();
  const running = new Set<string>();
  const failing = new Set<string>();

  const fire = async (cron: string) => {
    if (running.has(cron)) return;
    running.add(cron);
    const failure = await runRound(url, cron, stopped.signal);
    running.delete(cron);
    if (stopped.signal.aborted) return;
    if (failure && !failing.has(cron)) log(`the cron "${cron}" fails: ${failure}`);
    if (!failure && failing.has(cron)) log(`the cron "${cron}" works again`);
    if (failure) failing.add(cron);
    else failing.delete(cron);
  };
  const seldom = new Set(crons.filter(isSeldom));
  let lastTickAt = new Date();
  const tick = () => {
    const now = new Date();
    for (const cron of crons) if (!seldom.has(cron) || isDue(cron, lastTickAt, now)) void fire(cron);
    lastTickAt = now;
  };

  if (tickSeconds === 0) return { stop: () => {} };
  const timer = setInterval(tick, tickSeconds * 1000);
  tick();
  return {
    stop() {
      clearInterval(timer);
      stopped.abort();
    },
  };
}

function isSeldom(cron: string): boolean {
  const [first, second] = new Cron(cron, { timezone: "UTC" }).nextRuns(2);
  return !first || !second || second.getTime() - first.getTime() > seldomMs;
}

function isDue(cron: string, after: Date, now: Date): boolean {
  const next = new Cron(cron, { timezone: "UTC" }).nextRun(after);
  return next !== null && next <= now;
}

/** Returns why the round failed, or undefined. */
async function runRound(url: string, cron: string, signal: AbortSignal) {
  try {
    const path = `/cdn-cgi/handler/scheduled?cron=${encodeURIComponent(cron)}`;
    const response = await fetch(new URL(path, url), { signal });
    const text = await response.text();
    return response.ok ? undefined : `${response.status} ${text}`;
  } catch (error) {
    return (error as Error).message;
  }
}
