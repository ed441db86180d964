// The loop of a system whose interface is "claim some, then settle them": one for each connection.
import { setTimeout as sleep } from "node:timers/promises";
import { type BenchPayload, idleMs, type Worker, type WorkOptions } from "./system.ts";

export interface Connection<Claimed> {
  claim(limit: number): Promise<Claimed[]>;
  payloadOf(job: Claimed): BenchPayload;
  settle(done: readonly Claimed[], failed: readonly Claimed[]): Promise<void>;
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
    while (!isStopped) {
      const claimedFromMs = performance.now();
      const jobs = await connection.claim(batch);
      if (jobs.length === 0) {
        await sleep(idleMs);
        continue;
      }
      onClaim?.({ ms: performance.now() - claimedFromMs, jobs: jobs.length });
      const failed = new Set(jobs.filter((job) => !run(connection.payloadOf(job))));
      await connection.settle(
        jobs.filter((job) => !failed.has(job)),
        [...failed],
      );
      settledMs = performance.now();
    }
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
