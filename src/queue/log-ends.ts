// Logs the jobs whose attempts have ended, one line for each batch. There are too many of them to be logged always: the
// local stack asks for it.
import { isOwnType } from "../core/alarms/alarm.ts";
import { isFailure } from "../core/policy/attempt-end.ts";
import type { Settled } from "../core/settlements.ts";
import type { Log } from "./ports.ts";
import type { EndedAttempt } from "./settle.ts";

type Ended = EndedAttempt & { ms?: number };

/** `settled` has the answers in the order of the jobs. A drain's failures have lines of their own (drain/settle-report.ts). */
export function logEnds(
  log: Log,
  {
    jobs,
    settled,
    withFailures,
  }: { jobs: readonly Ended[]; settled: readonly Settled[]; withFailures: boolean },
): void {
  if (!log.debug) return;
  const ended = jobs.flatMap(({ job: { id, type }, outcome, ms }, index) => {
    const status = settled[index]?.status;
    const failure = isFailure(outcome) ? outcome.message : undefined;
    const isShown = failure === undefined ? status === "completed" || status === "cancelled" : withFailures;
    return status && isShown && !isOwnType(type) ? [{ job_id: id, type, status, ms, message: failure }] : [];
  });
  if (ended.length > 0) log.debug("jobs ended", { jobs: ended });
}
