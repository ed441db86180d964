// The reap round: brings back what dead drains held, buries what is past its time, and keeps the tables in shape. Each
// step is bounded in rows and in time and stands alone: one that fails does not stop the others, and the round fails at
// its end. What is left over is for the next round.
import { describeError } from "../core/database-errors.ts";
import {
  addPartitions,
  advanceCursors,
  checkReach,
  dropOldestDay,
  foldLedger,
  inspect,
  mendStamps,
  prune,
  reapExpired,
  reapLeases,
} from "../core/sql/index.ts";
import type { Statement } from "../core/sql/statement.ts";
import type { Ports } from "./ports.ts";

/** Of one statement: it holds its locks for some hundred milliseconds at most. */
const rowsPerCall = 2000;
const ledgerRowsPerCall = 100_000;
/** A step goes on while there is more, up to these. All steps together stay within the free plan's subrequests. */
const callsPerStep = 10;
const stepMs = 5_000;

export interface ReapReport {
  steps: Record<string, StepReport>;
}

export interface StepReport {
  ms: number;
  /** What each call answered. */
  did: unknown[];
  error?: string;
}

/** What was done and what was not is known to whoever records the round. */
export class ReapError extends AggregateError {
  readonly steps: ReapReport["steps"];

  constructor(errors: readonly unknown[], steps: ReapReport["steps"]) {
    super(errors, `${errors.length} of the reap round's steps failed`);
    this.steps = steps;
  }
}

export async function reap(ports: Ports): Promise<ReapReport> {
  const steps: ReapReport["steps"] = {};
  const errors: unknown[] = [];
  for (const { name, run } of stepsOf(ports)) {
    const startedMs = ports.clock.nowMs();
    const report: StepReport = { ms: 0, did: [] };
    try {
      await run(report);
    } catch (error) {
      report.error = (error as Error).message;
      ports.log.error("a reap step failed", { step: name, ...describeError(error) });
      errors.push(error);
    }
    steps[name] = { ...report, ms: ports.clock.nowMs() - startedMs };
  }
  if (errors.length > 0) throw new ReapError(errors, steps);
  return { steps };
}

interface Step {
  name: string;
  run(report: StepReport): Promise<void>;
}

/** In this order: jobs first, then what only keeps the tables small, then what only looks. */
function stepsOf(ports: Ports): Step[] {
  const backoffs = Object.fromEntries(ports.registry.all().map(({ type, backoff }) => [type, backoff]));
  const limit = rowsPerCall;
  const isFull = (rows: number) => rows >= limit;
  const step = <T>(name: string, statement: Statement<T>, hasMore: (did: T) => boolean = () => false) => ({
    name,
    run: (report: StepReport) => runStep(ports, { statement, hasMore, report }),
  });
  return [
    step("leases", reapLeases({ limit, backoffs }), ({ returned, buried }) => isFull(returned + buried)),
    step("expired", reapExpired({ limit }), isFull),
    step("unreachable", checkReach()),
    step("cursors", advanceCursors()), // after the check: it closes the gaps that this leaves
    step("stamps", mendStamps()),
    step("ledger", foldLedger({ limit: ledgerRowsPerCall }), (rows) => rows >= ledgerRowsPerCall),
    step("partitions", addPartitions()),
    step("dropped", dropOldestDay()),
    step("pruned", prune({ limit }), isFull),
    step("inspected", inspect()),
  ];
}

async function runStep<T>(
  ports: Ports,
  { statement, hasMore, report }: { statement: Statement<T>; hasMore(did: T): boolean; report: StepReport },
): Promise<void> {
  const endMs = ports.clock.nowMs() + stepMs;
  while (report.did.length < callsPerStep && ports.clock.nowMs() < endMs) {
    const did = await ports.db.run(statement);
    report.did.push(did);
    if (!hasMore(did)) return;
  }
}
