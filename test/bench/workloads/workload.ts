// What a workload gets and what it records. Systems take turns within each round, in a new order each time, so that other
// load on the machine affects all of them.
import type { Stage } from "../stage.ts";
import type { OpenQueue, System } from "../systems/system.ts";

export type Size = "full" | "quick" | "smoke";

export interface Workload {
  readonly name: string;
  readonly about: string;
  run(bench: Bench): Promise<void>;
}

export interface Bench {
  readonly systems: readonly System[];
  readonly size: Size;
  readonly stage: Stage;
  progress(line: string): void;
  record(sample: Sample): void;
  recordPoint(point: PinPoint): void;
}

/** One measured value. The values of one system and one `what` make a median. */
export interface Sample {
  workload: string;
  what: string;
  unit: string;
  better: "more" | "less";
  system: string;
  value: number;
}

/** The state of a system after a number of jobs, while the database is pinned. */
export interface PinPoint {
  system: string;
  churned: number;
  claimP50Ms: number;
  claimP99Ms: number;
  jobsPerSecond: number;
}

export interface Trial {
  system: System;
  queue: OpenQueue;
  url: string;
  round: number;
}

export async function inTurns(
  bench: Bench,
  { name, rounds }: { name: string; rounds: number },
  work: (trial: Trial) => Promise<string>,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const order = bench.systems.map(
      (_, index) => bench.systems[(index + round) % bench.systems.length] as System,
    );
    for (const system of order) {
      const told = await bench.stage.withDatabase(system, async (url) => {
        const queue = await system.open(url);
        try {
          return await work({ system, queue, url, round });
        } finally {
          await queue.close();
        }
      });
      bench.progress(`${name} ${round + 1}/${rounds}  ${system.name.padEnd(16)} ${told}`);
    }
  }
}
