// spike: 5,000 jobs a second are enqueued in batches of 100 while 4 connections drain. It measures whether the system
// keeps up, and when it is done.
import { percentile } from "../statistics.ts";
import { warmUp } from "./fill-and-drain.ts";
import { atRate } from "./mixed.ts";
import { createRunLog } from "./run-log.ts";
import { inTurns, type Workload } from "./workload.ts";

const jobsPerSecond = 5_000;
const perCall = 100;
const sizes = {
  full: { rounds: 1, seconds: 8 },
  quick: { rounds: 1, seconds: 1 },
  smoke: { rounds: 1, seconds: 0.2 },
};

export const spike: Workload = {
  name: "spike",
  about: "5,000 jobs/s come in for a while, then the rest is drained",
  async run(bench) {
    const { rounds, seconds } = sizes[bench.size];
    await inTurns(bench, { name: "spike", rounds }, async ({ system, queue }) => {
      const log = createRunLog();
      const calls: number[] = [];
      let deepest = 0;
      const worker = await queue.work({ batch: 100, connections: 4, run: log.run });
      const enqueueSome = async () => {
        const calledMs = performance.now();
        await queue.enqueue(log.next(perCall));
        calls.push(performance.now() - calledMs);
        deepest = Math.max(deepest, log.enqueued() - log.completed());
      };
      let startedMs = 0;
      try {
        await warmUp(queue, log);
        startedMs = performance.now();
        await atRate(jobsPerSecond / perCall, seconds, enqueueSome);
        await log.allRun();
      } finally {
        await worker.stop();
      }
      await log.check(queue);
      const common = { workload: "spike", better: "less", system: system.name } as const;
      const lateSeconds = (worker.settledMs() - startedMs) / 1000 - seconds;
      bench.record({ ...common, what: "5,000/s: done after its end", unit: "s", value: lateSeconds });
      bench.record({
        ...common,
        what: "5,000/s: an enqueue of 100, p99",
        unit: "ms",
        value: percentile(calls, 0.99),
      });
      bench.record({ ...common, what: "5,000/s: most that waited", unit: "jobs", value: deepest });
      return `done ${lateSeconds.toFixed(2)} s after its end, at most ${deepest} waited`;
    });
  },
};
