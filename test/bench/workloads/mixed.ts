// mixed: 500 jobs a second are enqueued one by one while workers run. It measures how long an enqueue takes, and how long a
// job waits for its start. Workers that are not notified of new jobs poll every 5 ms.
import { setTimeout as sleep } from "node:timers/promises";
import { percentile } from "../statistics.ts";
import { warmUp } from "./fill-and-drain.ts";
import { createRunLog } from "./run-log.ts";
import { inTurns, type Workload } from "./workload.ts";

const jobsPerSecond = 500;
const sizes = {
  full: { rounds: 2, seconds: 6 },
  quick: { rounds: 1, seconds: 1 },
  smoke: { rounds: 1, seconds: 0.3 },
};

export const mixed: Workload = {
  name: "mixed",
  about: "500 jobs/s in and out: latencies; 2 connections",
  async run(bench) {
    const { rounds, seconds } = sizes[bench.size];
    await inTurns(bench, { name: "mixed", rounds }, async ({ system, queue }) => {
      const log = createRunLog();
      const waits: number[] = [];
      const calls: number[] = [];
      const worker = await queue.work({
        batch: 100,
        connections: 2,
        run(payload) {
          waits.push(performance.now() - payload.atMs);
          return log.run(payload);
        },
      });
      const enqueueOne = async () => {
        const calledMs = performance.now();
        await queue.enqueue(log.next(1));
        calls.push(performance.now() - calledMs);
      };
      try {
        await warmUp(queue, log);
        waits.length = 0;
        await atRate(jobsPerSecond, seconds, enqueueOne);
        await log.allRun();
      } finally {
        await worker.stop();
      }
      await log.check(queue);
      const told = { wait: waits, enqueue: calls };
      for (const [name, times] of Object.entries(told)) {
        for (const [label, share] of [
          ["p50", 0.5],
          ["p99", 0.99],
        ] as const) {
          bench.record({
            workload: "mixed",
            what: `500/s: ${name === "wait" ? "enqueue to start" : "an enqueue"}, ${label}`,
            unit: "ms",
            better: "less",
            system: system.name,
            value: percentile(times, share),
          });
        }
      }
      return `start p50 ${percentile(waits, 0.5).toFixed(1)} ms, p99 ${percentile(waits, 0.99).toFixed(1)} ms`;
    });
  },
};

/** Starts each call at its time, even if earlier ones have not returned. So a slow system gets the same load. */
export async function atRate(perSecond: number, seconds: number, call: () => Promise<void>): Promise<void> {
  const startedMs = performance.now();
  const calls: Promise<void>[] = [];
  while (performance.now() < startedMs + seconds * 1000) {
    const due = ((performance.now() - startedMs) / 1000) * perSecond;
    while (calls.length < due) calls.push(call());
    await sleep(1);
  }
  await Promise.all(calls);
}
