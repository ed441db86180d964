// The simulation: workers join, die, hang and return while jobs with partition keys come in, over the real ring and the real
// claim on a real Postgres. It ends when every job is completed, or when nothing has happened for too long.
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { enqueue, liveWorkers, reapLeases } from "../../src/core/sql/index.ts";
import type { Database } from "../../src/queue/ports.ts";
import { createRandom } from "../support/seeded-random.ts";
import { wrongKeys } from "../support/turns.ts";
import { findViolations } from "./check-history.ts";
import { type Attempt, createHistory, type History, isCompletion } from "./history.ts";
import { type PlannedEvent, planEvents } from "./plan.ts";
import { createRingLog, type RingChange, type RingLog } from "./ring-log.ts";
import { queue, type SimulatedWorker, startWorker, type, type WorkerSettings } from "./simulated-worker.ts";

export interface SimulationOptions {
  workers: number;
  keys: number;
  jobs: number;
  seconds: number;
  leaseSeconds: number;
  seed: number;
}

export interface Simulation {
  options: SimulationOptions;
  endedMs: number;
  events: PlannedEvent[];
  changes: RingChange[];
  /** How many of the completed jobs were done by the owner of their bucket, as the registry had it at that time. */
  doneByOwners: number;
  history: History;
  violations: string[];
}

/** In the registry time passes this much faster: a worker is gone after 3 s, and not after 30. */
const registrySpeed = 10;
const heartbeatMs = 10_000 / registrySpeed;
const eventsIn30s = 12;
const tickMs = 100;
const inspectEveryMs = 500;
const givesUpAfterMs = 30_000;

interface Stage extends WorkerSettings {
  pool: pg.Pool;
  options: SimulationOptions;
  startedMs: number;
  ring: RingLog;
  wrongKeys: Set<string>;
  isOver: boolean;
}

export async function simulate(pool: pg.Pool, db: Database, options: SimulationOptions): Promise<Simulation> {
  const { workers, seconds, leaseSeconds, seed } = options;
  const everyMs = Math.min(30_000 / eventsIn30s, (seconds * 1000) / 6);
  const events = planEvents({ workers, seconds, everyMs, hangMs: 2_500 * leaseSeconds, seed });
  const random = createRandom(seed);
  const ring = createRingLog(await bucketsOfKeys(pool, options));
  const settings = { db, history: createHistory(), random, leaseSeconds, heartbeatMs };
  const stage: Stage = {
    ...settings,
    ...{ pool, options, ring, startedMs: Date.now(), wrongKeys: new Set(), isOver: false },
  };
  const upkeep = Promise.all([watchRegistry(stage), reap(stage), inspectKeys(stage)]);
  await Promise.all([produce(stage), playEvents(stage, events).then((live) => finish(stage, live))]);
  await upkeep;
  const { history } = stage;
  return {
    options,
    endedMs: Date.now() - stage.startedMs,
    events,
    changes: ring.changes,
    doneByOwners: countDoneByOwners(stage),
    history,
    violations: [...findViolations(history), ...stage.wrongKeys],
  };
}

async function bucketsOfKeys(pool: pg.Pool, { keys }: SimulationOptions): Promise<Map<string, number>> {
  const names = Array.from({ length: keys }, (_, n) => `k${n}`);
  const { rows } = await pool.query<{ key: string; bucket: number }>(
    "select key, sluice.bucket_of(sluice.key_of($1, 'ordered', key)) as bucket from unnest($2::text[]) as key",
    [queue, names],
  );
  return new Map(rows.map(({ key, bucket }) => [key, bucket]));
}

function countDoneByOwners({ history, ring, startedMs }: Stage): number {
  const isOwners = ({ key, worker, startedAt }: Attempt) =>
    ring.ownerOf(key, startedAt.ms - startedMs) === worker;
  return history.attempts.filter((attempt) => isCompletion(attempt) && isOwners(attempt)).length;
}

/** Enqueues the jobs over the whole time. Some keys have many more than others. */
async function produce({ db, history, options, startedMs }: Stage): Promise<void> {
  const { keys, jobs, seconds, seed } = options;
  const random = createRandom(seed + 1);
  for (let sent = 0; sent < jobs; await sleep(tickMs)) {
    const dueBy = Math.min(jobs, Math.ceil((jobs * (Date.now() - startedMs + tickMs)) / (seconds * 1000)));
    const batch = Array.from({ length: dueBy - sent }, () => {
      const partitionKey = `k${Math.floor(keys * random.next() ** 2)}`;
      const place = history.enqueued.get(partitionKey) ?? 0;
      history.enqueued.set(partitionKey, place + 1);
      return { type, queue, payload: { place }, partitionKey, maxAttempts: 20 };
    });
    if (batch.length > 0) await db.run(enqueue(batch));
    sent = dueBy;
  }
}

/** Answers with the workers that live at the end. */
async function playEvents(stage: Stage, events: readonly PlannedEvent[]): Promise<SimulatedWorker[]> {
  const workers = new Map<string, SimulatedWorker>();
  for (const { atMs, kind, worker: id } of events) {
    await sleep(Math.max(0, stage.startedMs + atMs - Date.now()));
    const worker = workers.get(id);
    if (kind === "join" || kind === "return") workers.set(id, startWorker(id, stage));
    else if (kind === "die") worker?.die();
    else if (kind === "hang") worker?.hang();
    else if (kind === "go on") worker?.goOn();
    else worker?.leave();
    if (kind === "die" || kind === "leave") await worker?.ended;
  }
  return [...workers.values()];
}

/** Waits until all jobs are completed, then lets everybody leave. */
async function finish(stage: Stage, workers: readonly SimulatedWorker[]): Promise<void> {
  const { history, options, ring, startedMs } = stage;
  let completed = 0;
  for (let lastMs = Date.now(); completed < options.jobs; await sleep(tickMs)) {
    const now = history.attempts.filter(isCompletion).length;
    if (now > completed) lastMs = Date.now();
    if (Date.now() - lastMs > givesUpAfterMs) break;
    completed = now;
  }
  stage.isOver = true;
  ring.note(Date.now() - startedMs, await liveIds(stage));
  for (const worker of workers) worker.leave();
  await Promise.all(workers.map(({ ended }) => ended));
}

async function liveIds({ db }: Stage): Promise<string[]> {
  return (await db.run(liveWorkers({ queue }))).map(({ id }) => id);
}

/** Notes each change of the ring, and lets the registry's time pass faster. */
async function watchRegistry(stage: Stage): Promise<void> {
  let lastMs = Date.now();
  while (!stage.isOver) {
    await sleep(tickMs);
    const nowMs = Date.now();
    await stage.pool.query("update sluice.worker set seen_at = seen_at - $1 * interval '1 ms'", [
      (nowMs - lastMs) * (registrySpeed - 1),
    ]);
    lastMs = nowMs;
    if (!stage.isOver) stage.ring.note(nowMs - stage.startedMs, await liveIds(stage));
  }
}

async function reap(stage: Stage): Promise<void> {
  const backoffs = { [type]: { baseSeconds: 0, maxSeconds: 0, jitterSeconds: 0 } };
  for (; !stage.isOver; await sleep(2 * tickMs)) await stage.db.run(reapLeases({ limit: 1000, backoffs }));
}

/** In every snapshot of the database each key has the turns that the dispatcher counts, and one at most. */
async function inspectKeys(stage: Stage): Promise<void> {
  for (; !stage.isOver; await sleep(inspectEveryMs))
    for (const wrong of await wrongKeys(stage.pool))
      stage.wrongKeys.add(`a snapshot had ${JSON.stringify(wrong)}`);
}
