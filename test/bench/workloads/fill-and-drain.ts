// Fills a queue and then drains it. Several workloads use this.
import type { Stage } from "../stage.ts";
import { type OpenQueue, producers, type WorkOptions } from "../systems/system.ts";
import { type RunLog, until } from "./run-log.ts";

const perCall = 1_000;
/** The first calls of a connection compile and plan. A worker does that once, so they are not counted. */
const warmUpBatches = 3;
const mostWarmUpJobs = 2_000;

export async function fill(
  queue: OpenQueue,
  log: RunLog,
  { jobs, size = perCall }: { jobs: number; size?: number },
): Promise<void> {
  let left = jobs;
  const produce = async () => {
    while (left > 0) {
      const count = Math.min(size, left);
      left -= count;
      await queue.enqueue(log.next(count));
    }
  };
  await Promise.all(Array.from({ length: producers }, produce));
}

export interface Drained {
  jobsPerSecond: number;
  /** Seconds of CPU for each job. */
  serverCpu: number;
  clientCpu: number;
}

/** Fills and drains. The time runs from when the connections are warm to the last settle. */
export async function fillAndDrain(
  { queue, stage }: { queue: OpenQueue; stage: Stage },
  log: RunLog,
  options: { jobs: number } & Pick<WorkOptions, "batch" | "connections">,
): Promise<Drained> {
  const { jobs, batch, connections } = options;
  const warmUp = Math.max(batch * connections, Math.min(warmUpBatches * batch * connections, mostWarmUpJobs));
  await fill(queue, log, { jobs: jobs + warmUp });
  const warmAt = log.completed() + warmUp;
  const now = () => ({
    ms: performance.now(),
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
    await log.allRun();
  } finally {
    await worker.stop();
  }
  const clientCpu = process.cpuUsage(warm.clientCpu);
  return {
    jobsPerSecond: (jobs * 1000) / (worker.settledMs() - warm.ms),
    serverCpu: (stage.serverCpuSeconds() - warm.serverCpu) / jobs,
    clientCpu: (clientCpu.user + clientCpu.system) / 1e6 / jobs,
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
