// The reap round: brings back what dead drains held, buries what is past its time, and keeps the tables in shape. Each
// step is bounded in rows and in time and stands alone: one that fails does not stop the others, and the round fails at
// its end. What is left over is for the next round.
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
import { runSteps, type StepReports } from "./rounds.ts";

/** Of one statement: it holds its locks for some hundred milliseconds at most. */
const rowsPerCall = 2000;
const ledgerRowsPerCall = 100_000;
/** A step goes on while there is more, up to these. All steps together stay within the free plan's subrequests. */
const callsPerStep = 10;
const stepMs = 5_000;

export function reap(ports: Ports): Promise<{ steps: StepReports }> {
  return runSteps(ports, "reap", listSteps(ports));
}

/** In this order: jobs first, then what only keeps the tables small, then what only looks. */
function listSteps(ports: Ports): Parameters<typeof runSteps>[2] {
  const backoffs = Object.fromEntries(ports.registry.all().map(({ type, backoff }) => [type, backoff]));
  const limit = rowsPerCall;
  const isFull = (rows: number) => rows >= limit;
  const step =
    <T>(statement: Statement<T>, hasMore: (did: T) => boolean = () => false) =>
    (did: unknown[]) =>
      runStep(ports, { statement, hasMore, did });
  return {
    leases: step(reapLeases({ limit, backoffs }), ({ returned, buried }) => isFull(returned + buried)),
    expired: step(reapExpired({ limit }), isFull),
    unreachable: step(checkReach()),
    cursors: step(advanceCursors()), // after the check: it closes the gaps that this leaves
    stamps: step(mendStamps()),
    ledger: step(foldLedger({ limit: ledgerRowsPerCall }), (rows) => rows >= ledgerRowsPerCall),
    partitions: step(addPartitions()),
    dropped: step(dropOldestDay()),
    pruned: step(prune({ limit }), isFull),
    inspected: step(inspect()),
  };
}

/** `did` gets what each call answered. */
async function runStep<T>(
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
