// The watch round: looks at the queue from outside the drain and says aloud when work is not being done.
import type { Snapshot } from "../core/snapshot.ts";
import { snapshot } from "../core/sql/index.ts";
import type { Queue } from "./ports.ts";

/** Drains run every minute and reapers every second one: past this, one of them is not doing its work. */
const overdueSeconds = 300;

export async function watch(queue: Queue): Promise<Snapshot | undefined> {
  const [seen] = await queue.db.run(snapshot());
  const oldestDueSeconds = Math.max(0, ...(seen?.groups ?? []).map((group) => group.oldestDueSeconds ?? 0));
  if (oldestDueSeconds > overdueSeconds) {
    queue.log.error("due jobs are not drained", { oldestDueSeconds });
  }
  if (seen && seen.expiredLeaseSeconds > overdueSeconds) {
    queue.log.error("expired leases are not reaped", {
      expiredLeaseSeconds: seen.expiredLeaseSeconds,
    });
  }
  return seen;
}
