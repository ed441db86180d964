// drain: claim and settle, at batch 1, 10, 100 and 1,000 with 1, 4 and 8 connections.
import { fillAndDrain } from "./fill-and-drain.ts";
import { createRunLog } from "./run-log.ts";
import { inTurns, type Workload } from "./workload.ts";

const batches = [1, 10, 100, 1_000] as const;
const sizes = {
  full: { rounds: 3, connections: [1, 4, 8], jobs: { 1: 2_000, 10: 6_000, 100: 24_000, 1000: 24_000 } },
  quick: { rounds: 1, connections: [4], jobs: { 1: 300, 10: 1_500, 100: 5_000, 1000: 4_000 } },
  smoke: { rounds: 1, connections: [1], jobs: { 1: 10, 10: 50, 100: 200, 1000: 500 } },
};
/** For these the CPU time is reported too. Other load on the machine changes it less than the rates. */
const cpuConnections = { full: 4, quick: 4, smoke: 1 };

export const drain: Workload = {
  name: "drain",
  about: "claim and settle, by batch and connections",
  async run(bench) {
    const { rounds, connections: counts, jobs } = sizes[bench.size];
    await inTurns(bench, { name: "drain", rounds }, async ({ system, queue }) => {
      const log = createRunLog();
      const told: string[] = [];
      for (const batch of batches) {
        for (const connections of counts) {
          const drained = await fillAndDrain({ queue, stage: bench.stage }, log, {
            jobs: jobs[batch],
            batch,
            connections,
          });
          const common = { workload: "drain", system: system.name };
          const what = `drain by ${batch}, ${connections} ${connections === 1 ? "connection" : "connections"}`;
          const rate = drained.jobsPerSecond;
          bench.record({ ...common, what, unit: "jobs/s", better: "more", value: rate });
          told.push(`${batch}×${connections}: ${rate.toFixed(0)}/s`);
          if (connections !== cpuConnections[bench.size]) continue;
          for (const side of ["server", "client"] as const) {
            bench.record({
              ...common,
              what: `drain by ${batch}: CPU of the ${side} for a job`,
              unit: "µs",
              better: "less",
              value: drained[`${side}Cpu`] * 1e6,
            });
          }
        }
      }
      await log.check(queue);
      return told.join("  ");
    });
  },
};
