// The gate of keys: producers with open transactions, claimers and pullers, reapers and operators run concurrently on six
// queues with keys. Then all jobs are run to their end, and what happened is compared with what a client could know.
import { setTimeout as wait } from "node:timers/promises";
import type pg from "pg";
import type { Settlement } from "../../../src/core/job.ts";
import type { KeyPolicy } from "../../../src/core/key-policy.ts";
import { rewriteFunction } from "../../support/rewrite-function.ts";
import { createRandom, type SeededRandom } from "../../support/seeded-random.ts";
import { type Actor, actors } from "./actors.ts";
import { createClaimer } from "./claimer.ts";
import { endAll } from "./end.ts";
import { History } from "./history.ts";
import { judge, type Verdict } from "./verdict.ts";

export interface KeysLoad {
  seed: number;
  /** The load ends when this many jobs are committed. */
  jobs: number;
  /** The longest time that a producer's transaction stays open. */
  openMs: number;
  /** The keys of each queue. With fewer, each has more jobs that wait for each other. */
  keys: number;
}

export interface KeyedQueue {
  readonly field: "partitionKey" | "fairKey";
  /** The largest that the policy ever says; null: none. */
  readonly cap: number | null;
  /**
   * All jobs have keys, and one type and priority. With new keys the dispatcher gives out turns ahead. With few keys turns go from
   * one job to the next.
   */
  readonly oneLane?: "new keys" | "few keys";
  /** What the next claims say. It may change while the gate runs. */
  policy: Required<KeyPolicy>;
}

export interface KeysGate {
  readonly pool: pg.Pool;
  readonly load: KeysLoad;
  readonly queues: Record<string, KeyedQueue>;
  readonly history: History;
  /** Claimed and never settled in time. They are settled too late, once another claimer has them. */
  readonly abandoned: Settlement["job"][];
  readonly checks: { made: number; wrong: unknown[]; unreachable: number };
  isOver: boolean;
}

export interface KeysReport extends Verdict {
  seed: number;
  committed: number;
  rolledBack: number;
  checks: number;
  /** Differences between what the dispatcher knows and the rows that hold turns, and of the books, in any snapshot. */
  wrong: unknown[];
  /** Jobs that the check of the reap rounds took for unreachable. */
  unreachable: number;
  staleSent: number;
  staleApplied: number;
  /** Settles of jobs that went back to waiting, because one before them in their run failed. */
  restApplied: number;
  /** Grants that were given out ahead, and those that a claim took in part or whole. */
  ahead: { given: number; taken: number };
  /** Dispatches that moved turns straight on to the next jobs of their keys. */
  moves: number;
}

const claimers = 16;
const actorCounts: Record<keyof typeof actors, number> = {
  enqueuer: 6,
  ticker: 1,
  reaper: 1,
  canceller: 2,
  operator: 1,
  expirer: 1,
  pauser: 1,
  changer: 1,
  checker: 1,
};

export function createQueues(): Record<string, KeyedQueue> {
  const policy = { onDead: "block", concurrency: null, secondsApart: null } as const;
  return {
    block: { field: "partitionKey", cap: null, policy: { ...policy } },
    pass: { field: "partitionKey", cap: null, policy: { ...policy, onDead: "pass" } },
    lined: { field: "partitionKey", cap: null, policy: { ...policy, onDead: "pass" }, oneLane: "new keys" },
    narrow: { field: "partitionKey", cap: null, policy: { ...policy, onDead: "pass" }, oneLane: "few keys" },
    capped: { field: "fairKey", cap: 3, policy: { ...policy, concurrency: 3 } },
    shared: { field: "fairKey", cap: null, policy: { ...policy } },
  };
}

export async function runKeysGate(pool: pg.Pool, load: KeysLoad): Promise<KeysReport> {
  const gate: KeysGate = {
    ...{ pool, load, queues: createQueues(), history: new History() },
    ...{ abandoned: [], checks: { made: 0, wrong: [], unreachable: 0 }, isOver: false },
  };
  pool.on("error", () => {}); // the database may be dropped before the pool's last connection has closed
  await watchTurns(pool);
  let seed = load.seed;
  const running = Object.entries(actors).flatMap(([name, act]) =>
    Array.from({ length: actorCounts[name as keyof typeof actors] }, () =>
      repeat(gate, act, createRandom(++seed)),
    ),
  );
  for (let number = 0; number < claimers; number++)
    running.push(repeat(gate, createClaimer(number), createRandom(++seed)));
  await Promise.all(running);
  await endAll(gate);
  const { history, checks } = gate;
  return {
    seed: load.seed,
    committed: history.committed.size,
    rolledBack: history.rolledBack.size,
    checks: checks.made,
    wrong: checks.wrong.slice(0, 3),
    unreachable: checks.unreachable,
    staleSent: history.stale.sent,
    staleApplied: history.stale.applied,
    restApplied: history.stale.restApplied,
    ...(await countTurns(pool)),
    ...(await judge(gate)),
  };
}

/** Counts rows of grant_ahead and moved turns by sequences, whose numbers stay when a claim is rolled back. */
async function watchTurns(pool: pg.Pool): Promise<void> {
  for (const [name, events] of [
    ["given", "insert"],
    ["taken", "update or delete"],
  ])
    await pool.query(`
      create sequence sluice.${name};
      create function sluice.count_${name}() returns trigger language plpgsql
        as $$ begin perform nextval('sluice.${name}'); return null; end $$;
      create trigger count_${name} after ${events} on sluice.grant_ahead
        for each row execute function sluice.count_${name}()`);
  await pool.query("create sequence sluice.moves");
  const from = "if granted.heads > 0 then";
  await rewriteFunction(pool, { name: "next_of_keys", from, to: `${from} perform nextval('sluice.moves');` });
}

async function countTurns(pool: pg.Pool): Promise<Pick<KeysReport, "ahead" | "moves">> {
  const { rows } = await pool.query(`
    select coalesce(pg_sequence_last_value('sluice.given'), 0)::int as given,
           coalesce(pg_sequence_last_value('sluice.taken'), 0)::int as taken,
           coalesce(pg_sequence_last_value('sluice.moves'), 0)::int as moves`);
  const { moves, ...ahead } = rows[0];
  return { ahead, moves };
}

async function repeat(gate: KeysGate, act: Actor, random: SeededRandom): Promise<void> {
  try {
    while (!gate.isOver) {
      await wait(await act(gate, random));
      if (gate.history.committed.size >= gate.load.jobs) gate.isOver = true;
    }
  } catch (error) {
    gate.isOver = true; // the other actors stop too
    throw error;
  }
}
