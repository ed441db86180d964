// The claimers of the keys' gate: they claim runs, settle them in every way, also twice and too late, and note it all.
import { setTimeout as wait } from "node:timers/promises";
import type { ClaimedJob, Outcome, Settlement } from "../../../src/core/job.ts";
import { claim, extend, settle } from "../../../src/core/sql/index.ts";
import type { SeededRandom } from "../../support/seeded-random.ts";
import { inTransaction, runOn } from "../gate/gate-sql.ts";
import { type Actor, gateTypes } from "./actors.ts";
import type { KeyedQueue, KeysGate } from "./keys-gate.ts";

const rollbackShare = 0.05;
const abandonedShare = 0.03;
const idleMs = 10;
const buckets = 360;
const complete: Outcome = { kind: "complete", output: null };

/**
 * A third of them are pullers, without runs, and a third own half of the buckets, and most often know who owns the others. One asks
 * for one type only, and one has a limit for a type. In a queue with one lane most claims end well.
 */
export function createClaimer(number: number): Actor {
  const isPuller = number % 3 === 0;
  const half = number % 3 === 1 ? number % 2 : null;
  const own = half === null ? null : Array.from({ length: buckets / 2 }, (_, n) => 2 * n + half);
  const owners = Array.from({ length: buckets }, (_, bucket) => bucket % 2);
  const limited = ["a", { type: "b", limits: { concurrency: 4 } }];
  const types = number === 5 ? ["a"] : number === 7 ? limited : gateTypes;
  /** Outcomes that the next claim of the same queue brings along. */
  const carried = new Map<string, Settlement[]>();
  return async (gate, random) => {
    const queue = random.pick(Object.keys(gate.queues) as [string, ...string[]]);
    const { oneLane } = gate.queues[queue] as KeyedQueue;
    const wanted = {
      ...{ queue, types, limit: random.int(1, 12), leaseSeconds: 60, buckets: own },
      ...(own && random.isLikely(0.9) ? { owners } : {}),
      ...{ run: isPuller ? 1 : random.pick([3, 5]), policy: { ...gate.queues[queue]?.policy } },
      ...{ worker: `w${number}`, registers: !isPuller },
      ...(random.isLikely(0.2) ? { maxBytes: 3000 } : {}),
    };
    const outcomes = carried.get(queue) ?? [];
    if (random.isLikely(rollbackShare)) {
      await inTransaction(gate.pool, { isCommitted: false }, async (client) => {
        const { jobs } = await runOn(client, claim(wanted, outcomes));
        await runOn(client, settle(jobs.map((job) => ({ job, outcome: outcomeOf(random) }))));
      });
      return idleMs;
    }
    carried.delete(queue);
    const sentAt = performance.now();
    const lost = outcomes.map(({ job }) => gate.history.isLost(job));
    const { jobs, settled } = await runOn(gate.pool, claim(wanted, outcomes));
    note(gate, outcomes, { settled, sentAt, lost });
    gate.history.addStarts(jobs);
    if (oneLane && random.isLikely(0.8))
      await send(
        gate,
        jobs.map((job) => ({ job, outcome: complete })),
      );
    else carried.set(queue, await work(gate, random, jobs));
    return jobs.length > 0 ? 0 : random.int(1, idleMs);
  };
}

/** Works on each run in its order. Returns outcomes that are not settled yet. */
async function work(
  gate: KeysGate,
  random: SeededRandom,
  jobs: readonly ClaimedJob[],
): Promise<Settlement[]> {
  const runs = [...Map.groupBy(jobs, (job) => job.runKey ?? job.id).values()];
  await wait(random.int(0, 8));
  if (random.isLikely(0.1)) await extendOne(gate, random, jobs);
  const unsettled: Settlement[] = [];
  for (const run of runs) {
    const way = random.pick(["one by one", "together", "together", "later", "backwards"]);
    const outcomes = outcomesOf(gate, random, run);
    if (way === "later") unsettled.push(...outcomes);
    else if (way === "together") await send(gate, outcomes);
    else if (way === "one by one") for (const outcome of outcomes) await send(gate, [outcome]);
    else await completeBackwards(gate, outcomes);
    if (way !== "later" && way !== "backwards") await settleRest(gate, run, outcomes);
  }
  await send(gate, tooLate(gate, random));
  if (random.isLikely(0.1)) await send(gate, unsettled); // and once more with the next claim
  return unsettled;
}

/** A worker that ignores the order. If its lease is lost on the way, the order of these jobs is its own fault. */
async function completeBackwards(gate: KeysGate, settlements: readonly Settlement[]): Promise<void> {
  for (const { job } of settlements) gate.history.touch(job.id);
  for (const { job } of settlements.toReversed()) await send(gate, [{ job, outcome: complete }]);
}

/** Up to the first that does not complete: a worker does not run the rest of the run after it. */
function outcomesOf(gate: KeysGate, random: SeededRandom, run: readonly ClaimedJob[]): Settlement[] {
  const settlements: Settlement[] = [];
  const isFine = random.isLikely(0.5);
  for (const job of run) {
    if (random.isLikely(abandonedShare)) {
      gate.abandoned.push(job);
      break;
    }
    const outcome = isFine ? complete : outcomeOf(random);
    settlements.push({ job, outcome });
    if (outcome.kind !== "complete") break;
  }
  return settlements;
}

/** The rest of a run went back when one before them failed, so nobody may settle them any more. */
async function settleRest(
  gate: KeysGate,
  run: readonly ClaimedJob[],
  outcomes: readonly Settlement[],
): Promise<void> {
  const last = outcomes.at(-1);
  const hasFailed = last !== undefined && last.outcome.kind !== "complete" && run[0]?.runKey !== null;
  const rest = hasFailed ? run.slice(outcomes.length) : [];
  if (rest.length === 0) return;
  const settled = await send(
    gate,
    rest.map((job) => ({ job, outcome: complete })),
  );
  gate.history.stale.restApplied += settled.filter((answer) => answer.applied).length;
}

/** Settlements of abandoned jobs that another claimer has claimed since. */
function tooLate(gate: KeysGate, random: SeededRandom): Settlement[] {
  const stale = gate.abandoned.filter((job) => gate.history.isLost(job));
  for (const job of stale) gate.abandoned.splice(gate.abandoned.indexOf(job), 1);
  gate.history.stale.sent += stale.length;
  return stale.map((job) => ({ job, outcome: outcomeOf(random) }));
}

async function extendOne(gate: KeysGate, random: SeededRandom, jobs: readonly ClaimedJob[]): Promise<void> {
  const job = jobs[random.int(0, jobs.length - 1)];
  if (job) await runOn(gate.pool, extend([job], { seconds: 90 }));
}

export async function send(gate: KeysGate, settlements: readonly Settlement[]) {
  if (settlements.length === 0) return [];
  const sentAt = performance.now();
  const lost = settlements.map(({ job }) => gate.history.isLost(job));
  const settled = await runOn(gate.pool, settle(settlements));
  note(gate, settlements, { settled, sentAt, lost });
  return settled;
}

interface Answer {
  settled: readonly { status: string | null; applied: boolean }[];
  sentAt: number;
  /** Known to be lost before they were sent. */
  lost: readonly boolean[];
}

function note(
  { history }: KeysGate,
  settlements: readonly Settlement[],
  { settled, sentAt, lost }: Answer,
): void {
  for (const [index, { job, outcome }] of settlements.entries()) {
    const answer = settled[index];
    if (!answer?.applied) continue;
    const { leaseKey } = job;
    history.addEnd(job.id, { leaseKey, outcome: outcome.kind, status: answer.status, sentAt });
    if (lost[index]) history.stale.applied++;
  }
}

function outcomeOf(random: SeededRandom): Outcome {
  const retryInSeconds = random.isLikely(0.3) ? 0 : random.next() * 0.3;
  const drawn = random.next();
  if (drawn < 0.7) return complete;
  if (drawn < 0.82) return { kind: "retry", message: "failed", retryInSeconds };
  if (drawn < 0.88) return { kind: "snooze", retryInSeconds };
  if (drawn < 0.95) return { kind: "release" };
  return { kind: "bury", message: "failed for good" };
}
