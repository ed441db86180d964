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
 * A step is repeated while there is more to do, within these limits. Four steps are repeated, and eleven are not: 47 statements at
 * most. With the record of the round and its heartbeats that fits into the 50 subrequests of the free plan.
 */
const callsPerStep = 9;
const stepMs = 5_000;

export function reap(ports: Ports): Promise<{ steps: StepReports }> {
  return runSteps(ports, "reap", listSteps(ports));
}

/** The part that has a time: leases that ran out, expired jobs, and slots that must be planned. */
export async function reapDue(ports: Ports): Promise<void> {
  const { leases, expired, schedules } = listSteps(ports);
  await leases?.([]);
  await expired?.([]);
  await schedules?.([]);
}

/** The order is: jobs first, then upkeep of the tables, then checks that only read. */
function listSteps(ports: Ports): Parameters<typeof runSteps>[2] {
  const backoffs = Object.fromEntries(ports.registry.all().map(({ type, backoff }) => [type, backoff]));
  const limit = rowsPerCall;
  const isFull = (rows: number) => rows >= limit;
  const step =
    <T>(statement: Statement<T>, hasMore: (did: T) => boolean = () => false) =>
    (did: unknown[]) =>
      repeatStatement(ports, { statement, hasMore, did });
  return {
    leases: step(reapLeases({ limit, backoffs }), ({ returned, buried }) => isFull(returned + buried)),
    expired: step(reapExpired({ limit }), isFull),
    resolved: step(resolveQueues()),
    stuck: step(sweepBlocked({ limit })), // looks at some of the waiting jobs in each round
    schedules: (did) => keepSchedules(ports, did),
    unreachable: step(checkReach()),
    cursors: step(advanceCursors()), // must follow the check, which closes the gaps that this leaves
    stamps: step(mendStamps()),
    ledger: step(foldLedger({ limit: ledgerRowsPerCall }), (rows) => rows >= ledgerRowsPerCall),
    deaths: step(foldDeaths({ limit: ledgerRowsPerCall })),
    flows: step(foldFlows({ limit: ledgerRowsPerCall })),
    partitions: step(addPartitions()),
    dropped: step(dropOldestDay()),
    pruned: step(prune({ limit }), isFull),
    inspected: step(inspect()),
  };
}

/** Adds the answer of each call to `did`. */
async function repeatStatement<T>(
  ports: Ports,
  { statement, hasMore, did }: { statement: Statement<T>; hasMore(answer: T): boolean; did: unknown[] },
): Promise<void> {
  const endMs = ports.clock.nowMs() + stepMs;
  while (did.length < callsPerStep && ports.clock.nowMs() < endMs) {
    const answer = await ports.db.run(statement);
    did.push(answer);
    if (!hasMore(answer)) return;
  }
}
