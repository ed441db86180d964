// A queue is filled, then drained: the part that several workloads share.
import { type OpenQueue, producers, type WorkOptions } from "../systems/system.ts";
import { type RunLog, until } from "./run-log.ts";

const perCall = 1_000;
/** A connection's first calls compile and plan, which a worker does once in its life. */
const warmUpBatches = 3;
const mostWarmUpJobs = 4_000;

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

/** Fills and drains: jobs per second from when the connections are warm to the last settle. */
export async function drainRate(
  queue: OpenQueue,
  log: RunLog,
  options: { jobs: number } & Pick<WorkOptions, "batch" | "connections">,
): Promise<number> {
  const { jobs, batch, connections } = options;
  const warmUp = Math.max(batch * connections, Math.min(warmUpBatches * batch * connections, mostWarmUpJobs));
  await fill(queue, log, { jobs: jobs + warmUp });
  const warmAt = log.completed() + warmUp;
  let warmMs = 0;
  const worker = await queue.work({
    batch,
    connections,
    run(payload) {
      const isDone = log.run(payload);
      if (log.completed() === warmAt) warmMs = performance.now();
      return isDone;
    },
  });
  try {
    await log.allRun();
  } finally {
    await worker.stop();
  }
  return (jobs * 1000) / (worker.settledMs() - warmMs);
}

/** The same for the producers' connections, before latencies are taken. */
export async function warmUp(queue: OpenQueue, log: RunLog): Promise<void> {
  await fill(queue, log, { jobs: 40 * producers, size: 4 });
  await log.allRun();
}

export interface Flow {
  batch: number;
  connections: number;
  /** As many as are waiting at most. */
  backlog: number;
  isOver(): boolean;
  onClaim?: WorkOptions["onClaim"];
}

/** Work that goes through: what has run is replaced, so that the queue is never empty and never long. */
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
