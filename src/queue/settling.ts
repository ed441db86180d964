// Settles what a drain's handlers have ended with, in batches bounded by rows and bytes, and keeps the drain's report. A
// settle is safe to repeat: what failed waits for the next turn.
import type { Outcome } from "../core/job.ts";
import type { Settled } from "../core/settlements.ts";
import { settle } from "../core/sql/index.ts";
import { createBreakers } from "./breakers.ts";
import type { Landing } from "./flights.ts";
import type { Queue } from "./ports.ts";

const outcomesPerSettle = 1000;
/** Outputs are dear. */
const outcomeBytesPerSettle = 512 * 1024;
/** Past this the leases run out, and the reaper brings the jobs back. */
const triesInARow = 8;
const pauseMs = 25;

export interface SettledCounts {
  completed: number;
  failed: number;
  released: number;
  /** The lease had gone to somebody else, or the settle never got through. */
  lost: number;
}

export interface Settling {
  readonly counts: SettledCounts;
  waiting(): number;
  add(landings: readonly Landing[]): void;
  /** Everything that waits. False: it failed, and what is left waits for another turn. */
  settleAll(): Promise<boolean>;
  /**
   * What the next claim can take along: all that waits, if it is completed work that fits in one batch. Breakers are
   * judged between a failure, or a probe, and the next claim.
   */
  riders(): readonly Landing[];
  /** The claim has settled them. */
  arrived(riders: readonly Landing[], settled: readonly Settled[]): void;
}

export function createSettling(
  queue: Queue,
  { name, spent, isOver }: { name: string; spent: { subrequests: number }; isOver(): boolean },
): Settling {
  const counts = { completed: 0, failed: 0, released: 0, lost: 0 };
  const breakers = createBreakers(queue);
  let waiting: Landing[] = [];
  let failures = 0;

  return {
    counts,
    waiting: () => waiting.length,
    add: (landings) => void waiting.push(...landings),
    async settleAll() {
      while (waiting.length > 0) {
        const batch = firstBatch(waiting);
        if (!(await settleBatch(batch))) return false;
        waiting = waiting.slice(batch.length);
        spent.subrequests += await breakers.judge(batch);
      }
      return true;
    },
    riders() {
      const mayRide = waiting.every(({ job, outcome }) => outcome.kind === "complete" && !job.isProbe);
      return mayRide && firstBatch(waiting).length === waiting.length ? waiting : [];
    },
    arrived(riders, settled) {
      count(riders, settled);
      waiting = waiting.slice(riders.length);
    },
  };

  async function settleBatch(batch: readonly Landing[]): Promise<boolean> {
    spent.subrequests++;
    try {
      const [settled = []] = await queue.db.run(settle(batch));
      failures = 0;
      count(batch, settled);
      return true;
    } catch (error) {
      failures++;
      queue.log.error("settle failed", {
        queue: name,
        jobs: batch.length,
        message: (error as Error).message,
      });
      if (failures >= triesInARow || isOver()) giveUp();
      else await new Promise((resolve) => setTimeout(resolve, pauseMs * 2 ** failures));
      return false;
    }
  }

  function giveUp(): void {
    counts.lost += waiting.length;
    waiting = [];
  }

  function count(batch: readonly Landing[], settled: readonly Settled[]): void {
    const applied = new Set(settled.filter((job) => job.applied).map((job) => job.id));
    const lost = batch.filter(({ job }) => !applied.has(job.id)).map(({ job }) => job.id);
    if (lost.length > 0) queue.log.warn("lease lost", { queue: name, jobs: lost });
    counts.lost += lost.length;
    for (const { job, outcome } of batch) if (applied.has(job.id)) counts[counted[outcome.kind]]++;
  }
}

const counted = {
  complete: "completed",
  retry: "failed",
  bury: "failed",
  snooze: "released",
  release: "released",
} as const satisfies Record<Outcome["kind"], keyof SettledCounts>;

function firstBatch(landings: readonly Landing[]): readonly Landing[] {
  let bytes = 0;
  const size = landings.findIndex(({ outcome }, index) => {
    bytes +=
      outcome.kind === "complete" && outcome.output !== null ? JSON.stringify(outcome.output).length : 0;
    return index > 0 && (bytes > outcomeBytesPerSettle || index >= outcomesPerSettle);
  });
  return size === -1 ? landings : landings.slice(0, size);
}
