// The one way in which attempts that ended are settled, for drains and for pullers. It gives each retry its time, settles
// all of them in one statement, and then lets the breakers of their types learn from what was applied.
import { describeError } from "../core/database-errors.ts";
import type { ClaimedJob, LeaseRef, Outcome } from "../core/job.ts";
import type { ChangedJob } from "../core/job-row.ts";
import { breakerAction, shouldOpenBreaker, withRetryTime } from "../core/policy/attempt-end.ts";
import type { Settled } from "../core/settlements.ts";
import { closeBreakerByProbe, openBreaker, recentAttempts, settle, settleOne } from "../core/sql/index.ts";
import type { Statement } from "../core/sql/statement.ts";
import type { Ports } from "./ports.ts";

export interface EndedAttempt {
  job: LeaseRef & Pick<ClaimedJob, "type" | "attempt" | "isProbe" | "isLinked">;
  outcome: Outcome;
}

/** When each type was last judged. A drain keeps it, so that a type that fails fast is judged once a second. */
export type JudgedTypes = Map<string, number>;
const judgeEveryMs = 1000;

/** Answers in the order of the attempts. All completed: one statement. */
export async function settleAttempts(
  ports: Ports,
  ended: readonly EndedAttempt[],
  judgedAtMs: JudgedTypes = new Map(),
): Promise<Settled[]> {
  const timed = ended.map(({ job, outcome }) => ({ job, outcome: timeRetry(ports, job, outcome) }));
  const settled = await ports.db.run(settle(timed));
  const applied = ended.filter((_, index) => settled[index]?.applied);
  await judgeBreakers(ports, applied, judgedAtMs);
  return settled;
}

/**
 * Settles one attempt and answers with the job. What the breaker learns is left to the caller, who can answer first and
 * then call judgeBreakers for an attempt that applied.
 */
export function settleAttempt(ports: Ports, { job, outcome }: EndedAttempt): Statement<ChangedJob | null> {
  return settleOne({ job, outcome: timeRetry(ports, job, outcome) });
}

function timeRetry(ports: Ports, { type, attempt }: EndedAttempt["job"], outcome: Outcome): Outcome {
  const backoff = ports.registry.find(type)?.backoff;
  return withRetryTime(outcome, { attempt, backoff, random: ports.random() });
}

/** Never throws: the attempts are settled, and the next failure or probe judges again. */
export async function judgeBreakers(
  ports: Ports,
  applied: readonly EndedAttempt[],
  judgedAtMs: JudgedTypes = new Map(),
): Promise<void> {
  const isDue = (type: string) => ports.clock.nowMs() - (judgedAtMs.get(type) ?? -Infinity) >= judgeEveryMs;
  const jobs = Map.groupBy(applied, ({ job, outcome }) => breakerAction(job, outcome));
  try {
    for (const { job } of jobs.get("close") ?? []) await closeBreaker(ports, job);
    const failedTypes = new Set(jobs.get("look")?.map(({ job }) => job.type));
    for (const type of [...failedTypes].filter(isDue)) {
      const { isOnTrial } = await openBreakerIfFailing(ports, type);
      // A breaker on trial lets few jobs through, so each failure counts.
      if (!isOnTrial) judgedAtMs.set(type, ports.clock.nowMs());
    }
  } catch (error) {
    ports.log.warn("breaker not judged", describeError(error));
  }
}

async function closeBreaker(ports: Ports, probe: EndedAttempt["job"]): Promise<void> {
  const hasClosed = await ports.db.run(closeBreakerByProbe(probe));
  if (hasClosed) ports.log.warn("breaker closed", { type: probe.type });
}

async function openBreakerIfFailing(ports: Ports, type: string) {
  const attempts = await ports.db.run(recentAttempts(type));
  const hasOpened = shouldOpenBreaker(attempts) && (await ports.db.run(openBreaker(type)));
  if (hasOpened) ports.log.error("breaker opened", { type, ...attempts });
  return attempts;
}
