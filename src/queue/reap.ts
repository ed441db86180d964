// The reap round: brings back what dead drains held, buries what is past its time, and keeps the tables in shape. Each
// step is bounded and stands alone: one that fails does not stop the others, and the round fails at its end.
import {
  addPartitions,
  advanceCursors,
  dropOldestDay,
  foldLedger,
  prune,
  reapExpired,
  reapLeases,
} from "../core/sql/index.ts";
import type { Statement } from "../core/sql/statement.ts";
import type { Queue } from "./ports.ts";

const rowsPerStep = 1000;
const ledgerRowsPerStep = 100_000;

/** In this order: jobs first, then what only keeps the tables small. */
const steps = {
  leases: reapLeases({ limit: rowsPerStep }),
  expired: reapExpired({ limit: rowsPerStep }),
  cursors: advanceCursors(),
  ledger: foldLedger({ limit: ledgerRowsPerStep }),
  partitionsAdded: addPartitions(),
  dayDropped: dropOldestDay(),
  pruned: prune({ limit: rowsPerStep }),
} satisfies Record<string, Statement<unknown>>;

export type ReapReport = { [step in keyof typeof steps]?: unknown };

export async function reap(queue: Queue): Promise<ReapReport> {
  const report: ReapReport = {};
  const failed: unknown[] = [];
  for (const [name, statement] of Object.entries<Statement<unknown>>(steps)) {
    try {
      [report[name as keyof typeof steps]] = await queue.db.run(statement);
    } catch (error) {
      queue.log.error("a reap step failed", { step: name, message: (error as Error).message });
      failed.push(error);
    }
  }
  if (failed.length > 0)
    throw new AggregateError(failed, `${failed.length} of the reap round's steps failed`);
  return report;
}
