// Direct is fast, periodic is reliable: after an enqueue a drain starts at once, in the same invocation but after
// the response. A lost nudge costs nothing but time, the cron finds the job.
import { nudgeBudget } from "../core/policy/drain-budget.ts";
import { drain } from "../queue/drain.ts";
import type { Queue } from "../queue/ports.ts";

/**
 * Plain data, shared by the requests of an isolate, so that a burst of enqueues makes one drain. No promise is
 * shared: one that belongs to another request never settles once that request is over. The time bounds the flag,
 * since an invocation that was cut off cannot clear it.
 */
const state = { drainingUntilMs: 0, isAskedAgain: false };
const longestNudgeMs = 30_000;

export function nudge(queue: Queue, waitUntil: (work: Promise<unknown>) => void): void {
  if (queue.clock.nowMs() < state.drainingUntilMs) {
    state.isAskedAgain = true;
    return;
  }
  state.drainingUntilMs = queue.clock.nowMs() + longestNudgeMs;
  waitUntil(drainUntilQuiet(queue));
}

async function drainUntilQuiet(queue: Queue): Promise<void> {
  const endMs = queue.clock.nowMs() + nudgeBudget.claimForMs;
  try {
    do {
      state.isAskedAgain = false;
      await drain(queue, nudgeBudget);
    } while (state.isAskedAgain && queue.clock.nowMs() < endMs);
  } catch (error) {
    queue.log.warn("nudge failed", { message: (error as Error).message });
  } finally {
    state.drainingUntilMs = 0;
  }
}
