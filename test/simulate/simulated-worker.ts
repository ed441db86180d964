// A worker of the simulation: a puller that heartbeats, claims by its buckets, works and settles, with the statements that the
// Worker runs for pullers. It can die (it stops at its next step and holds what it holds) and hang (it stands still, and goes
// on later as if nothing had happened).
import { setTimeout as sleep } from "node:timers/promises";
import type { ClaimedJob, Settlement } from "../../src/core/job.ts";
import { ownersOf, placeOf, type RingPlace } from "../../src/core/policy/hash-ring.ts";
import { claim, registerPuller, removeWorker, settle } from "../../src/core/sql/index.ts";
import type { Database } from "../../src/queue/ports.ts";
import type { SeededRandom } from "../support/seeded-random.ts";
import { type Attempt, type History, startAttempt } from "./history.ts";

export const queue = "orders";
export const type = "step";

const claimLimit = 20;
const maxRun = 5;
const idleMs = 80;
const waitsForAJobMs = 1_000;
const failureRate = 0.03;
const retrySeconds = 0.05;

export interface WorkerSettings {
  db: Database;
  history: History;
  random: SeededRandom;
  leaseSeconds: number;
  heartbeatMs: number;
}

export interface SimulatedWorker {
  readonly id: string;
  /** It dies or hangs in the middle of a job, so that it holds a key. If it gets no job within a second, it does so idle. */
  die(): void;
  hang(): void;
  goOn(): void;
  leave(): void;
  /** Resolves when the worker does nothing more. */
  readonly ended: Promise<void>;
}

class Died extends Error {}

interface State extends WorkerSettings {
  readonly id: string;
  isLeaving: boolean;
  isDead: boolean;
  /** What happens to it next. */
  fate: { kind: "die" | "hang"; untilMs: number } | null;
  /** Resolves when the worker may go on. Null if it does not hang. */
  hanging: PromiseWithResolvers<void> | null;
  place: RingPlace | null;
  heartbeatAtMs: number;
}

export function startWorker(id: string, settings: WorkerSettings): SimulatedWorker {
  const state: State = {
    ...settings,
    ...{ id, isLeaving: false, isDead: false, fate: null, hanging: null, place: null, heartbeatAtMs: 0 },
  };
  const untilMs = () => Date.now() + waitsForAJobMs;
  return {
    id,
    die: () => {
      state.fate = { kind: "die", untilMs: untilMs() };
    },
    hang: () => {
      state.fate = { kind: "hang", untilMs: untilMs() };
    },
    goOn: () => {
      state.hanging?.resolve();
    },
    leave: () => {
      state.isLeaving = true;
    },
    ended: work(state).catch((error: unknown) => {
      if (!(error instanceof Died)) throw error;
    }),
  };
}

/** Every step of a worker ends here: it may hang for a while, or die. */
async function endStep(state: State, { hasKey }: { hasKey: boolean }): Promise<void> {
  const { fate } = state;
  if (fate && (hasKey || Date.now() >= fate.untilMs)) {
    state.fate = null;
    if (fate.kind === "die") state.isDead = true;
    else state.hanging = Promise.withResolvers<void>();
  }
  await state.hanging?.promise;
  state.hanging = null;
  if (state.isDead) throw new Died(); // all runs of the worker stop at their next step
}

async function work(state: State): Promise<void> {
  while (!state.isLeaving) {
    if (Date.now() >= state.heartbeatAtMs) await heartbeat(state);
    const jobs = await claimJobs(state);
    if (jobs.length === 0) await sleep(idleMs * (0.5 + state.random.next()));
    else await settleAll(state, await workRuns(state, jobs));
    await endStep(state, { hasKey: false });
  }
  await state.db.run(removeWorker(state.id));
}

async function heartbeat(state: State): Promise<void> {
  const { db, id, heartbeatMs } = state;
  const { workers } = await db.run(registerPuller(id, [queue]));
  const ids = workers.map((worker) => worker.id);
  state.place = ids.length > 1 ? placeOf(id, ownersOf(ids)) : null;
  state.heartbeatAtMs = Date.now() + heartbeatMs;
}

async function claimJobs({ db, id, place, leaseSeconds }: State): Promise<ClaimedJob[]> {
  const request = { queue, types: [type], limit: claimLimit, run: maxRun, leaseSeconds };
  return (await db.run(claim({ ...request, worker: id, ...place }))).jobs;
}

/** The runs of a batch at the same time, and the jobs of each run one after another. */
async function workRuns(state: State, jobs: readonly ClaimedJob[]): Promise<Ended[]> {
  const runs = [...Map.groupBy(jobs, (job) => job.partitionKey).values()];
  return (await Promise.all(runs.map((run) => workRun(state, run)))).flat();
}

interface Ended {
  attempt: Attempt;
  settlement: Settlement;
}

async function workRun(state: State, run: readonly ClaimedJob[]): Promise<Ended[]> {
  const ended: Ended[] = [];
  for (const job of run) {
    // A worker knows when its lease ends. What it starts later is not its own any more.
    if (Date.now() >= job.leaseExpiresAt.getTime()) break;
    const attempt = await workJob(state, job);
    ended.push({ attempt, settlement: { job, outcome: toOutcome(attempt) } });
    if (attempt.outcome === "retry") break; // the rest of the run goes back with it
  }
  return ended;
}

async function workJob(state: State, job: ClaimedJob): Promise<Attempt> {
  const { history, random } = state;
  const attempt = startAttempt(history, state.id, job);
  await sleep(random.int(5, 40));
  await endStep(state, { hasKey: true });
  attempt.endedAt = history.now();
  attempt.outcome = random.isLikely(failureRate) ? "retry" : "complete";
  return attempt;
}

function toOutcome({ outcome }: Attempt): Settlement["outcome"] {
  return outcome === "retry"
    ? { kind: "retry", message: "a simulated failure", retryInSeconds: retrySeconds }
    : { kind: "complete", output: null };
}

async function settleAll(state: State, ended: readonly Ended[]): Promise<void> {
  if (ended.length === 0) return;
  const settled = await state.db.run(settle(ended.map(({ settlement }) => settlement)));
  for (const [index, { attempt }] of ended.entries()) attempt.isApplied = settled[index]?.applied ?? false;
}
