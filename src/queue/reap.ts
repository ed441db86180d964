// The reap round: jobs whose drain died with its invocation come back, in bounded number each round.
import { reapLeases } from "../core/sql/index.ts";
import type { Queue } from "./ports.ts";

const leasesPerRound = 1000;

export interface ReapReport {
  returned: number;
  buried: number;
}

export async function reap(queue: Queue): Promise<ReapReport> {
  const reaped = await queue.db.run(reapLeases({ limit: leasesPerRound }));
  const buried = reaped.filter((job) => job.status === "dead").length;
  return { returned: reaped.length - buried, buried };
}
