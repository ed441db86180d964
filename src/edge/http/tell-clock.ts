// What the clock is told when a puller has settled jobs. Drains tell it of their own jobs (queue/rounds.ts).
import type { Context } from "hono";
import { describeError } from "../../core/database-errors.ts";
import type { NewJob, Outcome } from "../../core/job.ts";
import { nextDue } from "../../core/sql/index.ts";
import type { EndedAttempt } from "../../queue/settle.ts";
import type { AppEnv } from "./app-env.ts";

/** A drain may run what a puller has put off or given back, and jobs of any queue may have waited for what it has ended. */
export function tellClock(
  { env: { ports }, executionCtx }: Context<AppEnv>,
  applied: readonly EndedAttempt[],
): void {
  const isDrained = ({ job }: EndedAttempt) =>
    (ports.registry.find(job.type)?.work.kind ?? "pulled") !== "pulled";
  const kinds = new Set(applied.filter(isDrained).map(({ outcome }) => outcome.kind));
  if (kinds.has("release") || applied.some(mayReleaseOthers)) ports.wakeIn(0);
  if (!kinds.has("retry") && !kinds.has("suspend")) return;
  const ask = async () => {
    const { dueMs } = await ports.db.run(nextDue(ports.registry.all()));
    if (dueMs !== null) ports.wakeIn(dueMs);
  };
  executionCtx.waitUntil(
    ask().catch((error) => ports.log.warn("clock not told of a retry", describeError(error))),
  );
}

/** A retry may have been the last one. */
function mayReleaseOthers({ job, outcome }: EndedAttempt): boolean {
  const isOver = !["release", "suspend", "snooze"].includes(outcome.kind) && !isContinued(outcome);
  return job.isLinked && isOver;
}

export function isContinued(outcome: Outcome): outcome is Outcome & { next: NewJob } {
  return outcome.kind === "complete" && outcome.next !== undefined;
}
