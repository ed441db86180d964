// What a workload gets and what it records. Systems take turns within each round, in a new order each time, so that other
// load on the machine affects all of them.
import type { Stage } from "../stage.ts";
import type { Keys, OpenQueue, System } from "../systems/system.ts";

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

/** A system, and what it does with keys. */
export interface Entry {
  system: System;
  keys?: Keys;
}

export interface Trial extends Entry {
  queue: OpenQueue;
  url: string;
  round: number;
}

export interface Turns {
  name: string;
  rounds: number;
  /** Default: every system, without keys. */
  entries?: readonly Entry[];
}

/** The systems that can use keys so. */
export function entriesWith(bench: Bench, keys: Keys): Entry[] {
  return bench.systems
    .filter(({ keyUses }) => keyUses?.includes(keys.use))
    .map((system) => ({ system, keys }));
}

/** Sluice, and another checkout of it if there is one. */
export function ownEntries(bench: Bench): Entry[] {
  return bench.systems
    .filter(({ name }) => name === "sluice" || name === "before")
    .map((system) => ({ system }));
}

export async function inTurns(
  bench: Bench,
  { name, rounds, entries = bench.systems.map((system) => ({ system })) }: Turns,
  work: (trial: Trial) => Promise<string>,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const order = entries.map((_, index) => entries[(index + round) % entries.length] as Entry);
    for (const { system, keys } of order) {
      const told = await bench.stage.withDatabase(system, async (url) => {
        const queue = await system.open(url, keys);
        try {
          return await work({ system, queue, url, round, ...(keys && { keys }) });
        } finally {
          await queue.close();
        }
      });
      bench.progress(`${name} ${round + 1}/${rounds}  ${system.name.padEnd(16)} ${told}`);
    }
  }
}
