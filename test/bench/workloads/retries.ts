// retries: every fifth job fails once and comes back as soon as the system lets it. graphile-worker waits for e seconds,
// which cannot be changed, so its rate says little.
import { fill } from "./fill-and-drain.ts";
import { createRunLog } from "./run-log.ts";
import { inTurns, type Workload } from "./workload.ts";

const failing = 5;
const sizes = {
  full: { rounds: 3, jobs: 20_000 },
  quick: { rounds: 1, jobs: 2_000 },
  smoke: { rounds: 1, jobs: 100 },
};

export const retries: Workload = {
  name: "retries",
  about: "20 % of the jobs fail once; batch 100, 4 connections",
  async run(bench) {
    const { rounds, jobs } = sizes[bench.size];
    await inTurns(bench, { name: "retries", rounds }, async ({ system, queue }) => {
      const log = createRunLog();
      const failed = new Set<number>();
      await fill(queue, log, { jobs });
      const worker = await queue.work({
        batch: 100,
        connections: 4,
        run(payload) {
          const fails = payload.n % failing === 0 && !failed.has(payload.n);
          if (!fails) return log.run(payload);
          failed.add(payload.n);
          return false;
        },
      });
      await log.allRun().finally(() => worker.stop());
      await log.check(queue);
      const value = (jobs * 1000) / (worker.settledMs() - worker.startedMs);
      bench.record({
        workload: "retries",
        what: "20 % fail once, until all are done",
        unit: "jobs/s",
        better: "more",
        system: system.name,
        value,
      });
      return `${value.toFixed(0)}/s`;
    });
  },
};
