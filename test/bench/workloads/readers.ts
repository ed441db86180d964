// readers: four reports in REPEATABLE READ beside the work, which is jobs that come in and go out at the same time. How
// much of the rate is left? Patient readers read the hot tables and keep their snapshot for a while: they show what an old
// snapshot costs. Busy readers read every table with jobs in it over and over: they also show what is left of two cores
// that four others use.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../systems/connections.ts";
import { flow } from "./fill-and-drain.ts";
import { createRunLog, type RunLog } from "./run-log.ts";
import { inTurns, type Trial, type Workload } from "./workload.ts";

const readerCount = 4;
const sizes = {
  full: { rounds: 3, seconds: 4, holdMs: 1_500 },
  quick: { rounds: 1, seconds: 1, holdMs: 500 },
  smoke: { rounds: 1, seconds: 1, holdMs: 50 },
};
const load = { batch: 100, connections: 4, backlog: 2_000 };

export const readers: Workload = {
  name: "readers",
  about: "four analytic readers in REPEATABLE READ beside the work",
  async run(bench) {
    const { rounds, seconds, holdMs } = sizes[bench.size];
    await inTurns(bench, { name: "readers", rounds }, async (trial) => {
      const log = createRunLog();
      await flowRate(trial, log, seconds / 3); // warm
      const clean = await flowRate(trial, log, seconds);
      const common = { workload: "readers", better: "more", system: trial.system.name } as const;
      bench.record({ ...common, what: "in and out, no readers", unit: "jobs/s", value: clean });
      const left: string[] = [];
      for (const { name, reading } of readings(trial, holdMs)) {
        const stop = startReaders(trial, reading);
        const read = await flowRate(trial, log, seconds).finally(stop);
        const share = (read / clean) * 100;
        bench.record({ ...common, what: `in and out, four ${name}`, unit: "jobs/s", value: read });
        bench.record({ ...common, what: `what is left with four ${name}`, unit: "%", value: share });
        left.push(`${read.toFixed(0)}/s with ${name}`);
      }
      return `${clean.toFixed(0)}/s, ${left.join(", ")}`;
    });
  },
};

async function flowRate({ queue }: Trial, log: RunLog, seconds: number): Promise<number> {
  const before = log.completed();
  const endMs = performance.now() + seconds * 1000;
  let ran = 0;
  await flow(queue, log, {
    ...load,
    isOver() {
      if (performance.now() < endMs) ran = log.completed() - before;
      return performance.now() >= endMs;
    },
  });
  return ran / seconds;
}

interface Reading {
  tables: readonly string[];
  holdMs: number;
}

function readings({ system }: Trial, holdMs: number): { name: string; reading: Reading }[] {
  return [
    { name: "readers", reading: { tables: system.hotTables, holdMs } },
    { name: "busy readers", reading: { tables: system.jobTables, holdMs: 0 } },
  ];
}

/** Returns how to end them. */
function startReaders({ url }: Trial, { tables, holdMs }: Reading): () => Promise<void> {
  let isOver = false;
  const read = async (index: number) => {
    const client = await connect(url);
    await sleep((index * holdMs) / readerCount);
    while (!isOver) {
      await client.query("begin isolation level repeatable read");
      for (const table of tables)
        await client.query(`select count(*), max(length(t::text)) from ${table} as t`);
      await sleep(holdMs);
      await client.query("commit");
    }
    await client.end();
  };
  const all = Promise.all(Array.from({ length: readerCount }, (_, index) => read(index)));
  all.catch(() => {}); // told at the end
  return async () => {
    isOver = true;
    await all;
  };
}
