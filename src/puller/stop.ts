// The steps of a stop: no more claims, then no more handlers, then no more requests.
import type { Settings } from "./options.ts";

export interface Stop {
  /** Aborted when the stop begins: no more claims. */
  readonly stopping: AbortSignal;
  /** Aborted when the handlers' time is over. */
  readonly ending: AbortSignal;
  /** Aborted when the last requests' time is over too. */
  readonly givingUp: AbortSignal;
  begin(): void;
  /** Everything has ended in time. */
  finish(): void;
}

/** How long the last settlements may take after the time of the handlers, and of a claim that waits, is over. */
const lastRequestsMs = 5_000;

export function createStop({
  stopSeconds,
  waitSeconds,
}: Pick<Settings, "stopSeconds" | "waitSeconds">): Stop {
  const [stopping, ending, givingUp] = [
    new AbortController(),
    new AbortController(),
    new AbortController(),
  ] as const;
  const timers: ReturnType<typeof setTimeout>[] = [];
  return {
    stopping: stopping.signal,
    ending: ending.signal,
    givingUp: givingUp.signal,
    begin() {
      if (stopping.signal.aborted) return;
      stopping.abort();
      timers.push(
        setTimeout(() => ending.abort(), stopSeconds * 1000),
        setTimeout(() => givingUp.abort(), Math.max(stopSeconds, waitSeconds) * 1000 + lastRequestsMs),
      );
    },
    finish() {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
