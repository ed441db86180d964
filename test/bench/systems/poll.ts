// The loop for a system that claims a batch and then settles it, one loop for each connection. A system that settles with
// its next claim does both in one call.
import { setTimeout as sleep } from "node:timers/promises";
import { type BenchPayload, idleMs, type Worker, type WorkOptions } from "./system.ts";

export interface Connection<Claimed> {
  claim(limit: number): Promise<Claimed[]>;
  payloadOf(job: Claimed): BenchPayload;
  settle(done: readonly Claimed[], failed: readonly Claimed[]): Promise<void>;
  settleAndClaim?(done: readonly Claimed[], limit: number): Promise<Claimed[]>;
  close(): Promise<void>;
}

export function poll<Claimed>(
  connections: readonly Connection<Claimed>[],
  { batch, run, onClaim }: WorkOptions,
): Worker {
  const startedMs = performance.now();
  let settledMs = startedMs;
  let isStopped = false;

  const loop = async (connection: Connection<Claimed>) => {
    let done: readonly Claimed[] = [];
    const settle = async (failed: readonly Claimed[]) => {
      await connection.settle(done, failed);
      settledMs = performance.now();
      done = [];
    };
    const next = async () => {
      if (!connection.settleAndClaim || done.length === 0) return connection.claim(batch);
      const jobs = await connection.settleAndClaim(done, batch);
      settledMs = performance.now();
      done = [];
      return jobs;
    };
    while (!isStopped) {
      const claimedFromMs = performance.now();
      const jobs = await next();
      if (jobs.length === 0) {
        await sleep(idleMs);
        continue;
      }
      onClaim?.({ ms: performance.now() - claimedFromMs, jobs: jobs.length });
      const failed = new Set(jobs.filter((job) => !run(connection.payloadOf(job))));
      done = jobs.filter((job) => !failed.has(job));
      if (!connection.settleAndClaim || failed.size > 0) await settle([...failed]);
    }
    if (done.length > 0) await settle([]);
  };
  const loops = Promise.all(connections.map(loop));
  loops.catch(() => {}); // told by stop()

  return {
    startedMs,
    settledMs: () => settledMs,
    async stop() {
      isStopped = true;
      try {
        await loops;
      } finally {
        await Promise.all(connections.map((connection) => connection.close()));
      }
    },
  };
}
