// The rounds that the crons start. Each is recorded with what it did and why it ended: health, alarms and metrics read
// these records.
import { describeError } from "../core/database-errors.ts";
import { cronBudget, drainsThatFit, type Plan, shareOf } from "../core/policy/drain-budget.ts";
import { drainsOfRound, type FanOut, maxInvocations } from "../core/policy/fan-out.ts";
import type { RoundKind } from "../core/snapshot.ts";
import { look, nextDue, recordRound, recordRoundAndLook } from "../core/sql/index.ts";
import type { Look, NextDue } from "../core/sql/next-due.ts";
import type { Statement } from "../core/sql/statement.ts";
import { advanceRuns, secondsBetweenSteps } from "./dead-runs.ts";
import { type DrainReport, drainQueue } from "./drain/drain.ts";
import type { DrainOptions } from "./drain/drain-state.ts";
import type { Ports } from "./ports.ts";

/** Drains one queue in an invocation of its own. */
export type DrainElsewhere = (queue: string) => Promise<DrainReport>;

export interface DrainRoundOptions {
  plan: Plan;
  fanOut: FanOut;
  /** Without it, all queues are drained side by side in this invocation. */
  drainElsewhere?: DrainElsewhere | undefined;
  /** Gets what the round found, before it drains. */
  onLook?(look: NextDue & { startedMs: number; hasWork: boolean }): Promise<void>;
}

/** The cron's drain round. A queue with a larger backlog gets more drains. A slow queue does not delay the others. */
export async function runDrainRound(
  ports: Ports,
  { plan, fanOut, drainElsewhere, onLook }: DrainRoundOptions,
): Promise<{ drains: number }> {
  const startedMs = ports.clock.nowMs();
  const isFannedOut = drainElsewhere !== undefined;
  const { queues, ...due } = await lookForWork(ports, { plan, fanOut, upkeep: true, isFannedOut });
  await onLook?.({ ...due, startedMs, hasWork: queues.length > 0 });
  const budget = shareOf(cronBudget(plan), { drains: queues.length });
  const drainHere = (queue: string) => drainAndRecord(ports, { kind: "drain", queue, budget });
  const results = await Promise.allSettled(queues.map(drainElsewhere ?? drainHere));
  const errors = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  if (queues.length === 0)
    await runAndRecord(ports, { kind: "drain" }, async () => ({ claimed: 0, end: "empty" }));
  if (errors.length > 0)
    throw new AggregateError(errors, `${errors.length} of ${queues.length} drains failed`);
  return { drains: queues.length };
}

/** The queue of each drain to start, and when more is due. The order is random, so that no queue is always left out. */
export async function lookForWork(
  ports: Ports,
  options: { plan: Plan; fanOut: FanOut; upkeep: boolean; isFannedOut: boolean },
): Promise<NextDue & { queues: string[] }> {
  const { plan, fanOut, upkeep, isFannedOut } = options;
  const types = ports.registry.all().filter((type) => type.work.kind !== "pulled");
  const cap = fanOut.jobsPerDrain * fanOut.maxDrains;
  const seconds = secondsBetweenSteps(ports);
  const statement = look({ types, cap, upkeep, seconds });
  const { waiting, hasDueRuns, ...due } = await lookAfterRuns(ports, plan, statement);
  const shuffled = waiting
    .map((backlog) => ({ ...backlog, place: ports.random() }))
    .sort((a, b) => a.place - b.place);
  const queues = isFannedOut
    ? drainsOfRound(shuffled, fanOut, { limit: maxInvocations })
    : drainsOfRound(shuffled, { ...fanOut, maxDrains: 1 }, { limit: drainsThatFit(cronBudget(plan)) });
  return { queues, ...due, dueMs: hasDueRuns ? 0 : due.dueMs };
}

/** Runs over dead letters go on first, so that the look sees their jobs. */
async function lookAfterRuns(ports: Ports, plan: Plan, statement: Statement<Look>): Promise<Look> {
  const first = await ports.db.run(statement);
  if (!first.hasDueRuns) return first;
  await advanceRuns(ports, plan).catch((error: unknown) =>
    ports.log.error("a run over dead letters did not go on", describeError(error)),
  );
  return await ports.db.run(statement);
}

/** How long to wait after an error that ended the claims. */
const afterErrorMs = 5_000;
const longDrainMs = 50_000;

/**
 * Runs a drain, records it, and says when to look again. A nudge that claimed nothing is not recorded. `asksDue` is for jobs
 * that nobody has announced, because they were enqueued by SQL.
 */
export async function drainAndRecord(
  ports: Ports,
  {
    kind,
    asksDue,
    ...options
  }: { kind: "drain" | "nudge"; asksDue?: boolean } & Omit<DrainOptions, "worker">,
): Promise<DrainReport> {
  // Several drains may start in one millisecond, and each is a worker of its own.
  const worker = `${kind}-${ports.clock.nowMs()}-${Math.floor(ports.random() * 1e9)}`;
  const isRecorded = ({ claimed }: DrainReport) => kind === "drain" || claimed > 0;
  const hasRates = ports.registry.all().some(({ limits }) => limits.rate !== undefined);
  const mayHavePutOff = (report: DrainReport) => asksDue === true || hasRates || !hasOnlyCompleted(report);
  const round = { kind, queue: options.queue, isRecorded, asksDue: mayHavePutOff };
  const startedMs = ports.clock.nowMs();
  const report = await runAndRecord(ports, round, () => drainQueue(ports, { ...options, worker }));
  // Jobs that its jobs have made or released may be of other queues.
  const isLong = ports.clock.nowMs() - startedMs > longDrainMs;
  if (report.end === "error") ports.wakeIn(afterErrorMs);
  else if (report.end !== "empty" || report.madeJobs || isLong) ports.wakeIn(0);
  return report;
}

/** Then it has put off no job to a later time: no retry, no sleep, no next job with a delay. */
function hasOnlyCompleted({ claimed, completed, madeJobs }: DrainReport): boolean {
  return claimed === completed && !madeJobs;
}

interface RecordedRound<Report> {
  kind: RoundKind;
  queue?: string;
  isRecorded?(report: Report): boolean;
  /** Whether it may be that a job is due later that nobody has announced. */
  asksDue?(report: Report): boolean;
}

/** Runs a round and records its report. If it fails, its error is recorded. */
export async function runAndRecord<Report extends object>(
  ports: Ports,
  round: RecordedRound<Report>,
  run: () => Promise<Report>,
): Promise<Report> {
  const { kind, queue, isRecorded = () => true, asksDue = () => false } = round;
  const startedMs = ports.clock.nowMs();
  const toRecord = (report: object) => ({
    ...{ kind, ...(queue && { queue }), ms: ports.clock.nowMs() - startedMs, report },
  });
  const report = await run().catch(async (error: Error) => {
    const steps = error instanceof StepsError ? error.steps : null;
    const record = recordRound(toRecord({ end: "error", message: error.message, steps }));
    // If the database is down, the record fails too. The first error is the one that the caller needs.
    await ports.db
      .run(record)
      .catch((unrecorded: unknown) =>
        ports.log.error("round not recorded", { kind, ...describeError(unrecorded) }),
      );
    throw error;
  });
  if (!asksDue(report)) {
    if (isRecorded(report)) await ports.db.run(recordRound(toRecord(report)));
    return report;
  }
  const types = ports.registry.all();
  const { dueMs } = isRecorded(report)
    ? await ports.db.run(recordRoundAndLook(toRecord(report), types))
    : await ports.db.run(nextDue(types));
  if (dueMs !== null) ports.wakeIn(dueMs);
  return report;
}

export type StepReports = Record<string, { ms: number; did: unknown[]; error?: string }>;

/** Some steps of a round failed. The reports of all its steps are recorded. */
export class StepsError extends AggregateError {
  readonly steps: StepReports;

  constructor(kind: RoundKind, errors: readonly unknown[], steps: StepReports) {
    super(errors, `${errors.length} of the ${kind} round's steps failed`);
    this.steps = steps;
  }
}

/** Runs the steps in order. One that fails does not stop the others; the round fails at its end. */
export async function runSteps(
  ports: Ports,
  kind: "reap" | "watch",
  steps: Record<string, (did: unknown[]) => Promise<unknown>>,
): Promise<{ steps: StepReports }> {
  const reports: StepReports = {};
  const errors: unknown[] = [];
  for (const [step, run] of Object.entries(steps)) {
    const startedMs = ports.clock.nowMs();
    const report: StepReports[string] = { ms: 0, did: [] };
    try {
      await run(report.did);
    } catch (error) {
      report.error = (error as Error).message;
      ports.log.error(`a ${kind} step failed`, { step, ...describeError(error) });
      errors.push(error);
    }
    reports[step] = { ...report, ms: ports.clock.nowMs() - startedMs };
  }
  if (errors.length > 0) throw new StepsError(kind, errors, reports);
  return { steps: reports };
}
