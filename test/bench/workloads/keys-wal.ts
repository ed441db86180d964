// keys, bytes of log: as the workload wal, with jobs of 10,000 keys.
import { measureLog } from "./wal.ts";
import { type Bench, entriesWith, inTurns } from "./workload.ts";

const sizes = {
  full: { rounds: 3, jobs: 20_000, keys: 10_000 },
  quick: { rounds: 1, jobs: 2_000, keys: 1_000 },
  smoke: { rounds: 1, jobs: 500, keys: 100 },
};

export async function logOfKeys(bench: Bench): Promise<void> {
  const { rounds, jobs, keys } = sizes[bench.size];
  const entries = entriesWith(bench, { use: "ordered" });
  await inTurns(bench, { name: "keys, log", rounds, entries }, async (trial) => {
    const bytes = await measureLog(bench, trial, { jobs, keyOf: (n) => `customer-${n % keys}` });
    const common = { workload: "keys", unit: "bytes", better: "less", system: trial.system.name } as const;
    bench.record({ ...common, what: "log of a keyed job: enqueue by 100", value: bytes.enqueue });
    bench.record({ ...common, what: "log of a keyed job: claim and settle by 100", value: bytes.finish });
    return `enqueue ${bytes.enqueue.toFixed(0)}, claim and settle ${bytes.finish.toFixed(0)} bytes`;
  });
}
