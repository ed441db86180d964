// The gate: a stress test of all that the engine promises. Producers with open transactions, claimers, settlers, reapers
// and cursor advances run concurrently. Then all jobs are run to their end and counted.
import { setTimeout as wait } from "node:timers/promises";
import type pg from "pg";
import type { Settlement } from "../../../src/core/job.ts";
import { createRandom, type SeededRandom } from "../../support/seeded-random.ts";
import { actors } from "./gate-actors.ts";
import { driveToTheEnd, type GateCount } from "./gate-count.ts";

export interface GateLoad {
  seed: number;
  /** The load ends when this many jobs are committed. */
  jobs: number;
  /** The longest time that a producer's transaction stays open. */
  openMs: number;
  /** The most jobs in one call of enqueue_many or enqueue_jobs. */
  jobsPerCall: number;
  /** The number of pairs of type and priority: with fewer, each has more jobs. */
  lanes: number;
}

/** What the actors know from outside: what they committed, what they sent, and what was answered. */
export interface Gate {
  readonly pool: pg.Pool;
  readonly load: GateLoad;
  readonly committed: Set<string>;
  readonly rolledBack: Set<string>;
  /** How often a settlement of a job and lease was applied. */
  readonly applied: Map<string, number>;
  /** How often each job was completed. */
  readonly completed: Map<string, number>;
  /** The newest generation under which a job was claimed. */
  readonly generations: Map<string, bigint>;
  /** Jobs that were claimed and not settled. They are settled too late, once another claimer has them. */
  readonly abandoned: { id: string; leaseKey: string }[];
  /** Settlements that the next claim carries. */
  readonly settleWithNextClaim: Settlement[][];
  readonly stale: { sent: number; applied: number };
  readonly checks: { made: number; unbalanced: unknown[] };
  readonly ticks: { committed: number; rolledBack: number };
  isOver: boolean;
}

export interface GateReport extends GateCount {
  seed: number;
  committed: number;
  rolledBack: number;
  checks: number;
  unbalanced: unknown[];
  staleSent: number;
  staleApplied: number;
  ticks: Gate["ticks"];
}

const actorCounts = {
  enqueuer: 5,
  claimer: 3,
  ticker: 2,
  reaper: 1,
  operator: 1,
  folder: 1,
  checker: 1,
} satisfies Record<keyof typeof actors, number>;

export async function runGate(pool: pg.Pool, load: GateLoad): Promise<GateReport> {
  const gate: Gate = {
    pool,
    load,
    committed: new Set(),
    rolledBack: new Set(),
    applied: new Map(),
    completed: new Map(),
    generations: new Map(),
    abandoned: [],
    settleWithNextClaim: [],
    stale: { sent: 0, applied: 0 },
    checks: { made: 0, unbalanced: [] },
    ticks: { committed: 0, rolledBack: 0 },
    isOver: false,
  };
  pool.on("error", () => {}); // the database may be dropped before the pool's last connection has closed
  let actorSeed = load.seed;
  const running = Object.entries(actors).flatMap(([name, act]) =>
    Array.from({ length: actorCounts[name as keyof typeof actors] }, () =>
      repeat(gate, act, createRandom(++actorSeed)),
    ),
  );
  await Promise.all(running);
  const count = await driveToTheEnd(gate);
  return {
    seed: load.seed,
    committed: gate.committed.size,
    rolledBack: gate.rolledBack.size,
    checks: gate.checks.made,
    unbalanced: gate.checks.unbalanced.slice(0, 3),
    staleSent: gate.stale.sent,
    staleApplied: gate.stale.applied,
    ticks: gate.ticks,
    ...count,
  };
}

async function repeat(
  gate: Gate,
  act: (gate: Gate, random: SeededRandom) => Promise<number>,
  random: SeededRandom,
): Promise<void> {
  try {
    while (!gate.isOver) {
      await wait(await act(gate, random));
      if (gate.committed.size >= gate.load.jobs) gate.isOver = true;
    }
  } catch (error) {
    gate.isOver = true; // the other actors stop too
    throw error;
  }
}
