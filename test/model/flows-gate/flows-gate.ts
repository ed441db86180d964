// The gate of flows: producers of random graphs with open transactions, workers, operators and senders of signals run
// concurrently on two queues. Then all jobs are run to their end. Nobody may be stuck, and none may start before its time.
import { setTimeout as wait } from "node:timers/promises";
import type pg from "pg";
import { createRandom, type SeededRandom } from "../../support/seeded-random.ts";
import { type Actor, actors, dropToday } from "./actors.ts";
import { endAll } from "./end.ts";
import { judge, type Verdict } from "./verdict.ts";
import { createWorker } from "./worker.ts";

export interface FlowsLoad {
  seed: number;
  /** The load ends when this many jobs are committed. */
  jobs: number;
  /** The longest time that a transaction stays open. */
  openMs: number;
}

export interface FlowsGate {
  readonly pool: pg.Pool;
  readonly load: FlowsLoad;
  /** Jobs and flows that were committed. */
  readonly known: string[];
  readonly flows: string[];
  /** Signals that some job waits for. */
  readonly signals: Set<string>;
  /** Completed from outside, before its time perhaps. */
  readonly resolved: Set<string>;
  /** How often each job was completed. */
  readonly completed: Map<string, number>;
  readonly early: string[];
  readonly checks: { made: number; wrong: unknown[]; swept: number };
  readonly counts: Record<string, number>;
  isOver: boolean;
}

export interface FlowsReport extends Verdict {
  seed: number;
  committed: number;
  checks: number;
  /** Differences between waits, edges and events, of flows' counts and of the books, in any snapshot. */
  wrong: unknown[];
  /** Waits that the sweep of the reap rounds had to repair. */
  swept: number;
  /** Jobs that started although a blocker had not ended. */
  early: string[];
  counts: Record<string, number>;
}

const workers = 12;
const actorCounts: Record<keyof typeof actors, number> = {
  flowProducer: 3,
  plainProducer: 2,
  canceller: 2,
  resolver: 1,
  sender: 2,
  operator: 1,
  reaper: 1,
  retention: 1,
  checker: 1,
};

export async function runFlowsGate(pool: pg.Pool, load: FlowsLoad): Promise<FlowsReport> {
  const gate: FlowsGate = {
    ...{ pool, load, known: [], flows: [], signals: new Set(), resolved: new Set() },
    ...{
      completed: new Map(),
      early: [],
      checks: { made: 0, wrong: [], swept: 0 },
      counts: {},
      isOver: false,
    },
  };
  pool.on("error", () => {}); // the database may be dropped before the pool's last connection has closed
  await dropToday(pool);
  let seed = load.seed;
  const running = Object.entries(actors).flatMap(([name, act]) =>
    Array.from({ length: actorCounts[name as keyof typeof actors] }, () =>
      repeat(gate, act, createRandom(++seed)),
    ),
  );
  for (let number = 0; number < workers; number++)
    running.push(repeat(gate, createWorker(), createRandom(++seed)));
  await Promise.all(running);
  await endAll(gate);
  const { checks } = gate;
  return {
    ...{
      seed: load.seed,
      committed: gate.known.length,
      checks: checks.made,
      wrong: checks.wrong.slice(0, 3),
    },
    ...{ swept: checks.swept, early: gate.early.slice(0, 5), counts: gate.counts },
    ...(await judge(gate)),
  };
}

async function repeat(gate: FlowsGate, act: Actor, random: SeededRandom): Promise<void> {
  try {
    while (!gate.isOver) {
      await wait(await act(gate, random));
      if (gate.known.length >= gate.load.jobs) gate.isOver = true;
    }
  } catch (error) {
    gate.isOver = true; // the other actors stop too
    throw error;
  }
}

export function count(gate: FlowsGate, what: string): void {
  gate.counts[what] = (gate.counts[what] ?? 0) + 1;
}
