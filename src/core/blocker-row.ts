// The jobs that a job waited for, as claim() and blockers_of() answer.
import type { Json } from "./job.ts";
import type { Blocker } from "./typed-job.ts";

export interface BlockerRow {
  job_id: string;
  status: Blocker["status"];
  output: Json;
}

/** By slot. */
export type BlockerRows = Readonly<Record<string, readonly BlockerRow[]>>;
export type JobBlockers = Readonly<Record<string, readonly Blocker[]>>;

export function toBlockers(slots: BlockerRows): JobBlockers {
  return Object.fromEntries(
    Object.entries(slots).map(([slot, rows]) => [
      slot,
      rows.map(({ job_id, ...row }) => ({ jobId: job_id, ...row }) as Blocker),
    ]),
  );
}
