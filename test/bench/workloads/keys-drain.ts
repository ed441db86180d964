// keys, claim and settle: 10,000 keys on 4 connections, and one hot key on one. A peer that takes too long is stopped, and
// its rate is that of the jobs so far.
import type { System } from "../systems/system.ts";
import { drainBesidePlain } from "./drain-beside-plain.ts";
import { fillAndDrain } from "./fill-and-drain.ts";
import { createRunLog } from "./run-log.ts";
import { settleDown } from "./settle-down.ts";
import { type Bench, entriesWith, inTurns } from "./workload.ts";

const sizes = {
  full: { rounds: 5, keys: 10_000, jobs: 30_000, mostMs: 15_000 },
  quick: { rounds: 1, keys: 10_000, jobs: 10_000, mostMs: 5_000 },
  smoke: { rounds: 1, keys: 50, jobs: 200, mostMs: 10_000 },
};
const hotSizes = {
  full: { rounds: 3, jobs: 20_000, mostMs: 4_000 },
  quick: { rounds: 1, jobs: 5_000, mostMs: 1_000 },
  smoke: { rounds: 1, jobs: 50, mostMs: 10_000 },
};

export async function drainKeys(bench: Bench): Promise<void> {
  const size = sizes[bench.size];
  await drainBesidePlain(bench, {
    ...size,
    workload: "keys",
    what: `${size.keys.toLocaleString("en")} keys`,
    use: "ordered",
  });
  await drainBesidePlain(bench, {
    ...size,
    rounds: Math.min(size.rounds, 3),
    workload: "keys",
    what: `${size.keys.toLocaleString("en")} random keys`,
    use: "ordered",
    isRandom: true,
  });
}

export async function drainOneKey(bench: Bench): Promise<void> {
  const { rounds, jobs, mostMs } = hotSizes[bench.size];
  const entries = entriesWith(bench, { use: "ordered" });
  await inTurns(bench, { name: "keys, one hot key", rounds, entries }, async ({ system, queue, url }) => {
    const log = createRunLog(() => "hot");
    const drained = await fillAndDrain({ queue, stage: bench.stage }, log, {
      ...{ jobs, mostMs, callers: 1, connections: 1, batch: hotBatch(system) },
      onFilled: () => settleDown(url),
    });
    if (drained.jobs === jobs) await log.check(queue);
    if (system.name === "sluice") log.checkOrder();
    bench.record({
      ...{ workload: "keys", system: system.name },
      ...{ what: "one hot key, 1 connection", unit: "jobs/s", better: "more", value: drained.jobsPerSecond },
    });
    return `${drained.jobsPerSecond.toFixed(0)}/s, ${drained.jobs} jobs, ${log.outOfOrder()} out of order`;
  });
}

/** graphile-worker's local queue would wait for its poll interval after each job of the key. */
function hotBatch({ name }: System): number {
  return name === "graphile-worker" ? 1 : 100;
}
