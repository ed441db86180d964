// The gate's claimer: it claims, and settles in every way, also twice and too late.
import {
  type ClaimedJob,
  generationOf,
  type LeaseRef,
  type Outcome,
  type Settlement,
} from "../../../src/core/job.ts";
import type { Settled } from "../../../src/core/settlements.ts";
import { claim, extend, settle } from "../../../src/core/sql/index.ts";
import type { SeededRandom } from "../../support/seeded-random.ts";
import type { Gate } from "./gate.ts";
import { gateTypes } from "./gate-actors.ts";
import { inTransaction, runOn } from "./gate-sql.ts";

const rollbackShare = 0.1;
const abandonedShare = 0.03;
const repeatedShare = 0.15;
const withNextClaimShare = 0.3;
/** The share of batches whose jobs all complete: the engine settles such leases in a different way. */
const completedShare = 0.3;
const complete: Outcome = { kind: "complete", output: null };
const leaseSeconds = 60;
const idleMs = 5;

export async function claimAndSettle(gate: Gate, random: SeededRandom): Promise<number> {
  const carried = gate.settleWithNextClaim.pop() ?? [];
  const limit = random.int(1, 60);
  const wanted = claim({ queue: "default", types: gateTypes, limit, leaseSeconds }, carried);
  if (random.isLikely(rollbackShare)) {
    gate.settleWithNextClaim.push(carried);
    await inTransaction(gate.pool, { isCommitted: false }, async (client) => {
      const { jobs } = await runOn(client, wanted);
      await runOn(client, settle(jobs.map((job) => ({ job, outcome: outcomeOf(random) }))));
    });
    return idleMs;
  }
  const stale = staleOf(gate, carried);
  const { jobs, settled } = await runOn(gate.pool, wanted);
  note(gate, carried, { stale, settled });
  for (const job of jobs) remember(gate, job);
  await settleSome(gate, random, jobs);
  return jobs.length > 0 ? 0 : idleMs;
}

function remember(gate: Gate, job: ClaimedJob): void {
  const generation = BigInt(generationOf(job.leaseKey));
  if (generation > (gate.generations.get(job.id) ?? 0n)) gate.generations.set(job.id, generation);
}

async function settleSome(gate: Gate, random: SeededRandom, jobs: readonly ClaimedJob[]): Promise<void> {
  const jobsToSettle = jobs.filter(() => !random.isLikely(abandonedShare));
  gate.abandoned.push(...jobs.filter((job) => !jobsToSettle.includes(job)));
  const isCompleted = random.isLikely(completedShare);
  const settlements = jobsToSettle.map((job) => ({
    job,
    outcome: isCompleted ? complete : outcomeOf(random),
  }));
  if (random.isLikely(withNextClaimShare)) {
    gate.settleWithNextClaim.push([...settlements, ...tooLate(gate, random)]);
    return;
  }
  if (!random.isLikely(repeatedShare)) {
    await settleAndNote(gate, [...settlements, ...tooLate(gate, random)]);
    return;
  }
  // While the same settlements arrive twice, an extend splits their lease.
  const some = jobsToSettle.filter(() => random.isLikely(0.5));
  await Promise.all([
    runOn(gate.pool, extend(some, { seconds: leaseSeconds })),
    settleAndNote(gate, settlements),
    settleAndNote(gate, [...settlements].reverse()),
  ]);
  await settleStale(gate, settlements);
}

/** Settlements of abandoned jobs that another claimer has claimed since. */
function tooLate(gate: Gate, random: SeededRandom): Settlement[] {
  const stale = gate.abandoned.filter((job) => isTooLate(gate, job));
  for (const job of stale) gate.abandoned.splice(gate.abandoned.indexOf(job), 1);
  gate.stale.sent += stale.length;
  return stale.map((job) => ({ job, outcome: outcomeOf(random) }));
}

function isTooLate(gate: Gate, job: LeaseRef): boolean {
  return (gate.generations.get(job.id) ?? 0n) > BigInt(generationOf(job.leaseKey));
}

async function settleAndNote(gate: Gate, settlements: readonly Settlement[]): Promise<void> {
  const stale = staleOf(gate, settlements);
  const settled = await runOn(gate.pool, settle(settlements));
  note(gate, settlements, { stale, settled });
}

/** Call this before sending: a job may be claimed again meanwhile. */
function staleOf(gate: Gate, settlements: readonly Settlement[]): boolean[] {
  return settlements.map(({ job }) => isTooLate(gate, job));
}

function note(
  gate: Gate,
  settlements: readonly Settlement[],
  { stale, settled }: { stale: readonly boolean[]; settled: readonly Settled[] },
): void {
  for (const [index, { job, outcome }] of settlements.entries()) {
    if (!settled[index]?.applied) continue;
    const key = `${job.id} ${job.leaseKey}`;
    gate.applied.set(key, (gate.applied.get(key) ?? 0) + 1);
    if (outcome.kind === "complete") gate.completed.set(job.id, (gate.completed.get(job.id) ?? 0) + 1);
    if (stale[index]) gate.stale.applied++;
  }
}

async function settleStale(gate: Gate, settlements: readonly Settlement[]): Promise<void> {
  const answers = await runOn(gate.pool, settle(settlements));
  gate.stale.sent += answers.length;
  gate.stale.applied += answers.filter((answer) => answer.applied).length;
}

function outcomeOf(random: SeededRandom): Outcome {
  const retryInSeconds = random.isLikely(0.3) ? 0 : random.next() * 0.5;
  const drawn = random.next();
  if (drawn < 0.7) return { kind: "complete", output: random.isLikely(0.2) ? drawn : null };
  if (drawn < 0.82) return { kind: "retry", message: "failed", retryInSeconds };
  if (drawn < 0.88) return { kind: "snooze", retryInSeconds };
  if (drawn < 0.96) return { kind: "release" };
  return { kind: "bury", message: "failed for good" };
}
