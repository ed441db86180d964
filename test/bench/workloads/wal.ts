// wal: bytes of the database's log for each job, read from its position before and after.
import type pg from "pg";
import { connect } from "../systems/connections.ts";
import { fill, fillAndDrain } from "./fill-and-drain.ts";
import { createRunLog } from "./run-log.ts";
import { type Bench, inTurns, type Trial, type Workload } from "./workload.ts";

const sizes = {
  full: { rounds: 3, jobs: 10_000 },
  quick: { rounds: 1, jobs: 1_500 },
  smoke: { rounds: 1, jobs: 500 },
};

export const wal: Workload = {
  name: "wal",
  about: "bytes of log for each job; batch 100, 1 connection",
  async run(bench) {
    const { rounds, jobs } = sizes[bench.size];
    await inTurns(bench, { name: "wal", rounds }, async (trial) => {
      const bytes = await measureLog(bench, trial, { jobs });
      const common = { workload: "wal", unit: "bytes", better: "less", system: trial.system.name } as const;
      bench.record({ ...common, what: "log of a job: enqueue by 100", value: bytes.enqueue });
      bench.record({ ...common, what: "log of a job: claim and settle by 100", value: bytes.finish });
      return `enqueue ${bytes.enqueue.toFixed(0)}, claim and settle ${bytes.finish.toFixed(0)} bytes`;
    });
  },
};

/** The bytes of one job. */
export async function measureLog(
  { stage }: Bench,
  { queue, url }: Trial,
  { jobs, keyOf }: { jobs: number; keyOf?: (n: number) => string },
): Promise<{ enqueue: number; finish: number }> {
  const client = await connect(url);
  const log = createRunLog(keyOf);
  // What is written once, and the pages that are written whole after a checkpoint, are not a job's.
  await fillAndDrain({ queue, stage }, log, { jobs: 500, batch: 100, connections: 1 });
  const before = await logPosition(client);
  await fill(queue, log, { jobs, size: 100 });
  const filled = await logPosition(client);
  const worker = await queue.work({ batch: 100, connections: 1, run: log.run });
  await log.allRun().finally(() => worker.stop());
  const drained = await logPosition(client);
  await client.end();
  await log.check(queue);
  return { enqueue: (filled - before) / jobs, finish: (drained - filled) / jobs };
}

export async function logPosition(client: pg.Client): Promise<number> {
  const { rows } = await client.query("select (pg_current_wal_insert_lsn() - '0/0')::float8 as position");
  return rows[0].position;
}
