// The heartbeat: calls a URL outside for each round, so that somebody notices when rounds stop. The pings of one round have
// the same id. They never delay or fail the round: they run beside it and after it, each with a short time-out.
import type { Log, Sender } from "./ports.ts";

export interface Heartbeat {
  /** Undefined if this kind of round has no heartbeat. */
  url: string | undefined;
  sender: Sender;
  log: Log;
  waitUntil(work: Promise<unknown>): void;
}

const timeoutMs = 5000;

export async function withHeartbeat<T>(heartbeat: Heartbeat, run: () => Promise<T>): Promise<T> {
  const { url, waitUntil } = heartbeat;
  if (!url) return run();
  const id = crypto.randomUUID();
  const started = sendPing(heartbeat, pingUrl(url, "/start", id));
  // The end follows the start, because a "start" that comes last would look like a round that never ended.
  const end = (suffix: string) =>
    waitUntil(started.then(() => sendPing(heartbeat, pingUrl(url, suffix, id))));
  try {
    const result = await run();
    end("");
    return result;
  } catch (error) {
    end("/fail");
    throw error;
  }
}

function pingUrl(url: string, suffix: string, id: string): string {
  const target = new URL(url);
  target.pathname = `${target.pathname.replace(/\/$/, "")}${suffix}`;
  target.searchParams.set("rid", id);
  return target.href;
}

async function sendPing({ sender, log }: Heartbeat, url: string): Promise<void> {
  try {
    const { status } = await sender.send({ method: "GET", url, timeoutMs });
    if (status >= 300) log.warn("heartbeat refused", { status });
  } catch (error) {
    log.warn("heartbeat failed", { message: (error as Error).message });
  }
}
