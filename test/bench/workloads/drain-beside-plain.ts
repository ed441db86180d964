// Drains jobs with keys beside plain jobs: batch 100, 4 connections. The keys take turns in the order of enqueueing, which
// one caller at a time makes known, or are drawn at random, so that jobs of one key lie close together by chance.
import { createRandom } from "../../support/seeded-random.ts";
import type { KeyUse } from "../systems/system.ts";
import { type Drained, fillAndDrain } from "./fill-and-drain.ts";
import { createRunLog } from "./run-log.ts";
import { settleDown } from "./settle-down.ts";
import { type Bench, entriesWith, inTurns, ownEntries, type Trial } from "./workload.ts";

export interface KeyedDrain {
  workload: string;
  /** What the rows are about. */
  what: string;
  use: KeyUse;
  keys: number;
  isRandom?: boolean;
  jobs: number;
  mostMs: number;
  rounds: number;
}

export async function drainBesidePlain(bench: Bench, options: KeyedDrain): Promise<void> {
  const { what, use, keys, isRandom = false, jobs, mostMs, rounds } = options;
  const entries = [...ownEntries(bench), ...entriesWith(bench, { use })];
  await inTurns(bench, { name: what, rounds, entries }, async (trial) => {
    const { system, queue, url } = trial;
    const random = createRandom(trial.round + 1);
    const log = createRunLog((n) => `customer-${isRandom ? random.int(0, keys - 1) : n % keys}`);
    const drained = await fillAndDrain({ queue, stage: bench.stage }, log, {
      ...{ jobs, mostMs, callers: 1, connections: 4, batch: 100 },
      onFilled: () => settleDown(url),
    });
    if (drained.jobs === jobs) await log.check(queue);
    if (system.name === "sluice" && trial.keys?.use === "ordered") log.checkOrder();
    record(bench, trial, options, drained);
    const cpu = (drained.serverCpu * 1e6).toFixed(0);
    return `${trial.keys ? "" : "plain "}${drained.jobsPerSecond.toFixed(0)}/s, ${cpu} µs, ${drained.jobs} jobs`;
  });
}

function record(bench: Bench, { system, keys }: Trial, options: KeyedDrain, drained: Drained): void {
  const common = { workload: options.workload, system: system.name };
  const what = keys ? options.what : `plain, beside ${options.what}`;
  bench.record({
    ...common,
    ...{ what: `${what}, by 100, 4 connections`, unit: "jobs/s", better: "more" },
    value: drained.jobsPerSecond,
  });
  bench.record({
    ...common,
    ...{ what: `${what}: CPU of the server for a job`, unit: "µs", better: "less" },
    value: drained.serverCpu * 1e6,
  });
}
