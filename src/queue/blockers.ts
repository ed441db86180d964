// The jobs that a claimed job waited for, if there were too many for the claim's answer. They are read in parts.
import type { JobBlockers } from "../core/blocker-row.ts";
import type { ClaimedJob } from "../core/job.ts";
import { findBlockers } from "../core/sql/index.ts";
import type { Ports } from "./ports.ts";

const blockersPerCall = 1000;

export async function blockersOf(
  { db }: Pick<Ports, "db">,
  { id, blockers }: Pick<ClaimedJob, "id" | "blockers">,
): Promise<JobBlockers> {
  if (blockers) return blockers;
  let all: JobBlockers = {};
  for (let from = 0; ; from += blockersPerCall) {
    const part = await db.run(findBlockers(id, { from, limit: blockersPerCall }));
    all = Object.fromEntries(
      Object.entries(part).map(([slot, list]) => [slot, [...(all[slot] ?? []), ...list]]),
    );
    if (Object.values(part).flat().length < blockersPerCall) return all;
  }
}
