// Sends many jobs through a queue that is never empty and never long, and says how it goes at each mark.
import { percentile } from "../statistics.ts";
import { flow } from "./fill-and-drain.ts";
import type { RunLog } from "./run-log.ts";
import type { PinPoint, Trial } from "./workload.ts";

const load = { batch: 100, connections: 2, backlog: 1_500 };

export interface Churn {
  jobs: number;
  mark: number;
  giveUpMs: number;
}

/** Reports each mark, and where a system was stopped. */
export async function churn(
  { system, queue }: Trial,
  log: RunLog,
  { jobs, mark, giveUpMs }: Churn,
  onMark: (point: PinPoint) => void,
): Promise<void> {
  const before = log.completed();
  let markedAt = before;
  let markedMs = performance.now();
  let claims: number[] = [];
  const churned = () => log.completed() - before;
  const tell = () => {
    const jobsPerSecond = ((log.completed() - markedAt) * 1000) / (performance.now() - markedMs);
    onMark({
      system: system.name,
      churned: churned(),
      claimP50Ms: percentile(claims, 0.5),
      claimP99Ms: percentile(claims, 0.99),
      jobsPerSecond,
    });
    markedAt = log.completed();
    markedMs = performance.now();
    claims = [];
  };
  await flow(queue, log, {
    ...load,
    isOver: () => churned() >= jobs || performance.now() > giveUpMs,
    onClaim({ ms }) {
      claims.push(ms);
      if (log.completed() - markedAt >= mark) tell();
    },
  });
  if (log.completed() - markedAt > mark / 10 && claims.length > 0) tell();
}
