// enqueue: 1, 100 and 1,000 jobs in a call, on four connections.

import { median } from "../statistics.ts";
import { producers } from "../systems/system.ts";
import { createRunLog } from "./run-log.ts";
import { inTurns, type Workload } from "./workload.ts";

const callSizes = [1, 100, 1_000];
const sizes = {
  full: { rounds: 3, ms: 1_000 },
  quick: { rounds: 1, ms: 300 },
  smoke: { rounds: 1, ms: 30 },
};

export const enqueue: Workload = {
  name: "enqueue",
  about: `1, 100 and 1,000 jobs a call, ${producers} connections`,
  async run(bench) {
    const { rounds, ms } = sizes[bench.size];
    await inTurns(bench, { name: "enqueue", rounds }, async ({ system, queue }) => {
      const told: string[] = [];
      for (const size of callSizes) {
        const log = createRunLog();
        const calls: number[] = [];
        const startedMs = performance.now();
        const startedCpu = bench.stage.serverCpuSeconds();
        const produce = async () => {
          while (performance.now() < startedMs + ms) {
            const calledMs = performance.now();
            await queue.enqueue(log.next(size));
            calls.push(performance.now() - calledMs);
          }
        };
        await Promise.all(Array.from({ length: producers }, produce));
        const rate = (log.enqueued() * 1000) / (performance.now() - startedMs);
        const common = { workload: "enqueue", system: system.name };
        bench.record({
          ...common,
          what: `enqueue by ${size}`,
          unit: "jobs/s",
          better: "more",
          value: rate,
        });
        bench.record({
          ...common,
          what: `enqueue by ${size}, p50 of a call`,
          unit: "ms",
          better: "less",
          value: median(calls),
        });
        bench.record({
          ...common,
          what: `enqueue by ${size}: CPU of the server for a job`,
          unit: "µs",
          better: "less",
          value: ((bench.stage.serverCpuSeconds() - startedCpu) * 1e6) / log.enqueued(),
        });
        told.push(`by ${size}: ${rate.toFixed(0)}/s`);
      }
      return told.join("  ");
    });
  },
};
