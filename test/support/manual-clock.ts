// A clock that moves only when a test advances it. It then runs the timers that are due, in order.
import type { Clock } from "../../src/queue/ports.ts";

export interface ManualClock extends Clock {
  advance(ms: number): void;
}

export function createManualClock(): ManualClock {
  let nowMs = Date.now();
  const timers = new Set<{ atMs: number; run(): void }>();
  const setTimer: Clock["setTimer"] = (ms, run) => {
    const timer = { atMs: nowMs + ms, run };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  return {
    nowMs: () => nowMs,
    setTimer,
    sleep: (ms) => new Promise((resolve) => setTimer(ms, resolve)),
    advance(ms) {
      const untilMs = nowMs + ms;
      const due = [...timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
      for (const timer of due) {
        timers.delete(timer);
        nowMs = timer.atMs;
        timer.run();
      }
      nowMs = untilMs;
    },
  };
}
