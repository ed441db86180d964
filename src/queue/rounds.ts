// The rounds that the crons start. Each is recorded with what it did and why it ended: that is what health, alarms and
// the dashboard read.
import { describeError } from "../core/database-errors.ts";
import { cronBudget, drainsThatFit, type Plan, shareOf } from "../core/policy/drain-budget.ts";
import { drainsOfRound, type FanOut, maxInvocations } from "../core/policy/fan-out.ts";
import { backlog, recordRound } from "../core/sql/index.ts";
import { type DrainOptions, type DrainReport, drainQueue } from "./drain/drain.ts";
import type { Ports } from "./ports.ts";

/** Runs one drain in an invocation of its own. */
export type StartDrain = (name: string) => Promise<DrainReport>;

export interface DrainRoundOptions {
  plan: Plan;
  fanOut: FanOut;
  /** Without it, all queues are drained side by side in this invocation. */
  startDrain?: StartDrain | undefined;
}

/** The cron's drain round: as many drains for each queue as its backlog is worth. A slow queue delays no other. */
export async function drainAll(
  ports: Ports,
  { plan, fanOut, startDrain }: DrainRoundOptions,
): Promise<object> {
  const types = ports.registry.all().filter((type) => type.work.kind !== "pulled");
  const cap = fanOut.jobsPerDrain * fanOut.maxDrains;
  const waiting = await ports.db.run(backlog({ types: types.map(({ type }) => type), cap }));
  const inAnyOrder = waiting
    .map((backlog) => ({ ...backlog, place: ports.random() }))
    .sort((a, b) => a.place - b.place);
  const names = startDrain
    ? drainsOfRound(inAnyOrder, fanOut, { limit: maxInvocations })
    : drainsOfRound(inAnyOrder, { ...fanOut, maxDrains: 1 }, { limit: drainsThatFit(cronBudget(plan)) });
  const budget = shareOf(cronBudget(plan), { drains: startDrain ? 1 : names.length });
  const start = startDrain ?? ((name) => drainRound(ports, { kind: "drain", queue: name, budget }));
  const ended = await Promise.allSettled(names.map(start));
  const failed = ended.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  const idle = { claimed: 0, end: "empty" };
  if (names.length === 0) await ports.db.run(recordRound({ kind: "drain", ms: 0, report: idle }));
  if (failed.length > 0)
    throw new AggregateError(failed, `${failed.length} of ${names.length} drains failed`);
  return { drains: names.length };
}

/** One drain of one queue, recorded. A nudge that found nothing leaves no trace. */
export async function drainRound(
  ports: Ports,
  { kind, ...options }: { kind: "drain" | "nudge" } & Omit<DrainOptions, "worker">,
): Promise<DrainReport> {
  const startedMs = ports.clock.nowMs();
  // Several drains may start in one millisecond, and each is a worker of its own.
  const worker = `${kind}-${startedMs}-${Math.floor(ports.random() * 1e9)}`;
  const report = await drainQueue(ports, { ...options, worker });
  if (kind === "drain" || report.claimed > 0) {
    await ports.db.run(
      recordRound({ kind, queue: options.queue, ms: ports.clock.nowMs() - startedMs, report }),
    );
  }
  return report;
}

/** Runs a round of another kind and records it, also when it fails. */
export async function recorded(
  ports: Ports,
  kind: "reap" | "watch",
  run: () => Promise<object | undefined>,
): Promise<object> {
  const startedMs = ports.clock.nowMs();
  const record = (report: object) =>
    ports.db.run(recordRound({ kind, ms: ports.clock.nowMs() - startedMs, report }));
  try {
    const report = (await run()) ?? {};
    await record({ end: "done", steps: stepsOf(report) });
    return report;
  } catch (error) {
    // A database that is away fails the record too. The first error is the one to tell.
    await record({ end: "error", message: (error as Error).message, steps: stepsOf(error) }).catch(
      (unrecorded: unknown) => ports.log.error("round not recorded", { kind, ...describeError(unrecorded) }),
    );
    throw error;
  }
}

function stepsOf(ended: unknown): object | null {
  return (ended as { steps?: object }).steps ?? null;
}
