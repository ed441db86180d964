// Fills a queue and then drains it. Several workloads use this.
import type { Stage } from "../stage.ts";
import { type OpenQueue, producers, type WorkOptions } from "../systems/system.ts";
import { type RunLog, until } from "./run-log.ts";

const perCall = 1_000;
/** The first calls of a connection compile and plan. A worker does that once, so they are not counted. */
const warmUpBatches = 3;
const mostWarmUpJobs = 2_000;

export interface Fill {
  jobs: number;
  /** Jobs in a call. */
  size?: number;
  /** Calls at one time. With one, the order of the jobs is known. */
  callers?: number;
}

export async function fill(
  queue: OpenQueue,
  log: RunLog,
  { jobs, size = perCall, callers = producers }: Fill,
): Promise<void> {
  let left = jobs;
  const produce = async () => {
    while (left > 0) {
      const count = Math.min(size, left);
      left -= count;
      await queue.enqueue(log.next(count));
    }
  };
  await Promise.all(Array.from({ length: callers }, produce));
}

export interface Drain extends Fill, Pick<WorkOptions, "batch" | "connections"> {
  /** A system that takes longer is stopped, and its rate is that of the jobs so far. Default: it must finish. */
  mostMs?: number;
  onFilled?(): Promise<void>;
}

export interface Drained {
  /** Without those of the warm-up. */
  jobs: number;
  jobsPerSecond: number;
  /** Seconds of CPU for each job. */
  serverCpu: number;
  clientCpu: number;
}

/** Fills and drains. The time runs from when the connections are warm to the last settle. */
export async function fillAndDrain(
  { queue, stage }: { queue: OpenQueue; stage: Stage },
  log: RunLog,
  options: Drain,
): Promise<Drained> {
  const { jobs, batch, connections, mostMs, onFilled, ...calls } = options;
  const warmUp = Math.max(batch * connections, Math.min(warmUpBatches * batch * connections, mostWarmUpJobs));
  await fill(queue, log, { jobs: jobs + warmUp, ...calls });
  await onFilled?.();
  const warmAt = log.completed() + warmUp;
  const now = () => ({
    ms: performance.now(),
    completed: log.completed(),
    serverCpu: stage.serverCpuSeconds(),
    clientCpu: process.cpuUsage(),
  });
  let warm = now();
  const worker = await queue.work({
    batch,
    connections,
    run(payload) {
      const isDone = log.run(payload);
      if (log.completed() === warmAt) warm = now();
      return isDone;
    },
  });
  try {
    await (mostMs === undefined ? log.allRun() : log.allRunOr(mostMs));
  } finally {
    await worker.stop();
  }
  const clientCpu = process.cpuUsage(warm.clientCpu);
  const drained = log.completed() - warm.completed;
  return {
    jobs: drained,
    jobsPerSecond: (drained * 1000) / (worker.settledMs() - warm.ms),
    serverCpu: (stage.serverCpuSeconds() - warm.serverCpu) / drained,
    clientCpu: (clientCpu.user + clientCpu.system) / 1e6 / drained,
  };
}

/** Warms the producers' connections before latencies are measured. */
export async function warmUp(queue: OpenQueue, log: RunLog): Promise<void> {
  await fill(queue, log, { jobs: 40 * producers, size: 4 });
  await log.allRun();
}

export interface Flow {
  batch: number;
  connections: number;
  /** The most jobs that wait at one time. */
  backlog: number;
  isOver(): boolean;
  onClaim?: WorkOptions["onClaim"];
}

/** Replaces each job that has run, so that the queue is never empty and never long. */
export async function flow(queue: OpenQueue, log: RunLog, options: Flow): Promise<void> {
  const { batch, connections, backlog, isOver, onClaim } = options;
  const worker = await queue.work({ batch, connections, run: log.run, ...(onClaim ? { onClaim } : {}) });
  const produce = async () => {
    while (!isOver()) {
      if (log.enqueued() - log.completed() < backlog) await queue.enqueue(log.next(100));
      else await until(() => isOver() || log.enqueued() - log.completed() < backlog);
    }
  };
  try {
    await Promise.all([produce(), produce()]);
  } finally {
    await worker.stop();
  }
}
