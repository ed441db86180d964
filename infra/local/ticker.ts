// Fires the Worker's crons, because `wrangler dev` does not: all of them now and at every tick. Skips a cron whose last
// round is still running.

export interface Ticker {
  stop(): void;
}

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
  const tick = () => {
    for (const cron of crons) void fire(cron);
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
