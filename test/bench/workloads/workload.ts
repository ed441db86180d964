// What a workload is given and what it records. Systems take turns within each round, in another order each time, so
// that a noisy machine hurts all alike.
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

/** One measured value. Those of one system and one `what` make a median. */
export interface Sample {
  workload: string;
  what: string;
  unit: string;
  better: "more" | "less";
  system: string;
  value: number;
}

/** How a system does after so many jobs went through under the pin. */
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
