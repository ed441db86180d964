// The reap round: makes abandoned jobs pending again, buries expired jobs, and does upkeep of the tables. Each step has a
// limit of rows and of time, and the next round does the rest. A step that fails does not stop the others; the round fails
// at its end.
import {
  addPartitions,
  advanceCursors,
  checkReach,
  dropOldestDay,
  foldDeaths,
  foldFlows,
  foldLedger,
  inspect,
  mendStamps,
  prune,
  reapExpired,
  reapLeases,
  resolveQueues,
  sweepBlocked,
} from "../core/sql/index.ts";
import type { Statement } from "../core/sql/statement.ts";
import type { Ports } from "./ports.ts";
import { runSteps, type StepReports } from "./rounds.ts";
import { keepSchedules } from "./schedules.ts";

/** The limit of one statement, so that it holds its locks for a few hundred milliseconds at most. */
const rowsPerCall = 2000;
const ledgerRowsPerCall = 100_000;
/**
 * The statements of a whole round. With the record of the round, a count of failed enqueues and two heartbeats they fit into the
 * 50 subrequests that an invocation has on the free plan, also if the database's driver has to repeat some.
 */
const maxStatements = 43;
/** A visit also sends notices, and looks at the database twice. */
const maxVisitStatements = 8;
const stepMs = 5_000;
/** When to come back for what did not fit. */
export const soonMs = 1_000;

/** The clock is told if something is left. Without a clock, the next round does it. */
export async function reap(ports: Ports): Promise<{ steps: StepReports }> {
  const spare = { calls: maxStatements - 16, steps: 5, hasMore: false };
  try {
    return await runSteps(ports, "reap", listSteps(ports, spare));
  } finally {
    if (spare.hasMore) ports.wakeIn(soonMs, { upkeep: true });
  }
}

/** The part that has a time: leases that ran out, expired jobs, and slots that must be planned. Tells whether some are left. */
export async function reapDue(ports: Ports): Promise<{ hasMore: boolean }> {
  const spare = { calls: maxVisitStatements - 4, steps: 3, hasMore: false };
  const { leases, expired, schedules } = listSteps(ports, spare);
  await leases?.([]);
  await expired?.([]);
  await schedules?.([]);
  return spare;
}

/**
 * The calls that steps may make beyond their first one, or first two if they plan slots. Each of the steps that repeat may use
 * an equal part of what those before it have left, so none of them can use up all.
 */
interface Spare {
  calls: number;
  /** How many of these steps are still to come. */
  steps: number;
  hasMore: boolean;
}

/** The order is: jobs first, then upkeep of the tables, then checks that only read. */
function listSteps(ports: Ports, spare: Spare): Parameters<typeof runSteps>[2] {
  const backoffs = Object.fromEntries(ports.registry.all().map(({ type, backoff }) => [type, backoff]));
  const limit = rowsPerCall;
  const isFull = (rows: number) => rows >= limit;
  const step =
    <T>(statement: Statement<T>) =>
    async (did: unknown[]) =>
      did.push(await ports.db.run(statement));
  const repeated =
    <T>(statement: Statement<T>, hasMore: (did: T) => boolean) =>
    (did: unknown[]) =>
      spend(spare, (calls) => repeatStatement(ports, { statement, hasMore, did, calls }));
  return {
    leases: repeated(reapLeases({ limit, backoffs }), ({ returned, buried }) => isFull(returned + buried)),
    expired: repeated(reapExpired({ limit }), isFull),
    resolved: step(resolveQueues()),
    stuck: step(sweepBlocked({ limit })), // looks at some of the waiting jobs in each round
    schedules: (did) => spend(spare, (calls) => keepSchedules(ports, did, { calls })),
    unreachable: step(checkReach()),
    cursors: step(advanceCursors()), // must follow the check, which closes the gaps that this leaves
    stamps: step(mendStamps()),
    ledger: repeated(foldLedger({ limit: ledgerRowsPerCall }), (rows) => rows >= ledgerRowsPerCall),
    deaths: step(foldDeaths({ limit: ledgerRowsPerCall })),
    flows: step(foldFlows({ limit: ledgerRowsPerCall })),
    partitions: step(addPartitions()),
    dropped: step(dropOldestDay()),
    pruned: repeated(prune({ limit }), isFull),
    inspected: step(inspect()),
  };
}

/** Runs a step with its part of the spare calls. If it fails, its part counts as used. */
async function spend(
  spare: Spare,
  run: (calls: number) => Promise<{ unused: number; hasMore: boolean }>,
): Promise<void> {
  const part = Math.floor(spare.calls / spare.steps);
  spare.steps -= 1;
  spare.calls -= part;
  const { unused, hasMore } = await run(part);
  spare.calls += unused;
  spare.hasMore ||= hasMore;
}

/** Adds the answer of each call to `did`. */
async function repeatStatement<T>(
  ports: Ports,
  {
    statement,
    hasMore,
    did,
    calls,
  }: { statement: Statement<T>; hasMore(answer: T): boolean; did: unknown[]; calls: number },
): Promise<{ unused: number; hasMore: boolean }> {
  const endMs = ports.clock.nowMs() + stepMs;
  for (let unused = calls; ; unused--) {
    const answer = await ports.db.run(statement);
    did.push(answer);
    const isLeft = hasMore(answer);
    if (!isLeft || unused === 0 || ports.clock.nowMs() >= endMs) return { unused, hasMore: isLeft };
  }
}
