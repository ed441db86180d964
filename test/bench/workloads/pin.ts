// pin: a transaction holds an old snapshot, so that no dead row can be removed, while jobs are processed. At each mark it
// records the time of a claim of 100, and the rate since the mark before. A system that takes too long is stopped. Then the
// transaction ends, the tables are vacuumed, and the claims are timed once more.
import { connect } from "../systems/connections.ts";
import { claimCost } from "../systems/sluice-claim-cost.ts";
import { churn } from "./churn.ts";
import { createRunLog } from "./run-log.ts";
import { type Bench, inTurns, type PinPoint, type Trial, type Workload } from "./workload.ts";

const sizes = {
  full: { jobs: 500_000, mark: 50_000, seconds: 90, recovery: 10_000 },
  quick: { jobs: 12_000, mark: 3_000, seconds: 4, recovery: 1_000 },
  smoke: { jobs: 2_000, mark: 1_000, seconds: 5, recovery: 500 },
};

export const pin: Workload = {
  name: "pin",
  about: "500,000 jobs go through while an old snapshot is held; claims of 100",
  async run(bench) {
    await inTurns(bench, { name: "pin", rounds: 1 }, async (trial) => {
      const { jobs, mark, seconds, recovery } = sizes[bench.size];
      const log = createRunLog();
      await churn(
        trial,
        log,
        { jobs: recovery, mark: recovery, giveUpMs: Number.POSITIVE_INFINITY },
        () => {},
      ); // warm
      const costBefore = await ownCost(trial);
      const release = await holdSnapshot(trial.url);
      const giveUpMs = performance.now() + seconds * 1000;
      const points: PinPoint[] = [];
      await churn(trial, log, { jobs, mark, giveUpMs }, (point) => {
        points.push(point);
        bench.recordPoint(point);
        bench.progress(
          `pin, ${trial.system.name}: ${point.churned} went through, claim p50 ${point.claimP50Ms.toFixed(1)} ms, ` +
            `${point.jobsPerSecond.toFixed(0)}/s`,
        );
      });
      const costAfter = await ownCost(trial);
      await release();
      await vacuum(trial);
      let recovered: PinPoint | undefined;
      await churn(
        trial,
        log,
        { jobs: recovery, mark: recovery, giveUpMs: performance.now() + seconds * 1000 },
        (point) => {
          recovered = point;
        },
      );
      record(bench, trial, { points, recovered, costBefore, costAfter });
      return `${points.at(-1)?.churned ?? 0} of ${jobs} went through`;
    });
  },
};

async function holdSnapshot(url: string): Promise<() => Promise<void>> {
  const client = await connect(url);
  await client.query("begin isolation level repeatable read");
  await client.query("select pg_current_xact_id()");
  return async () => {
    await client.query("rollback");
    await client.end();
  };
}

async function vacuum({ url, system }: Trial): Promise<void> {
  const client = await connect(url);
  for (const table of system.hotTables) await client.query(`vacuum ${table}`);
  await client.end();
}

/** Only for Sluice. Peers do not document which statement is their claim. */
async function ownCost({ system, url }: Trial): Promise<{ ms: number; buffers: number } | undefined> {
  return system.name === "sluice" ? claimCost(url) : undefined;
}

type Cost = Awaited<ReturnType<typeof ownCost>>;

function record(
  bench: Bench,
  { system }: Trial,
  run: { points: PinPoint[]; recovered: PinPoint | undefined; costBefore: Cost; costAfter: Cost },
): void {
  const common = { workload: "pin", system: system.name };
  const [first, last] = [run.points[0], run.points.at(-1)];
  if (!first || !last) return;
  const less = { ...common, better: "less" as const };
  const more = { ...common, better: "more" as const };
  bench.record({ ...more, what: "pinned: jobs that went through", unit: "jobs", value: last.churned });
  bench.record({
    ...more,
    what: "pinned: rate at the last mark",
    unit: "jobs/s",
    value: last.jobsPerSecond,
  });
  bench.record({ ...less, what: "pinned: claim p50, first mark", unit: "ms", value: first.claimP50Ms });
  bench.record({ ...less, what: "pinned: claim p50, last mark", unit: "ms", value: last.claimP50Ms });
  bench.record({ ...less, what: "pinned: claim p99, last mark", unit: "ms", value: last.claimP99Ms });
  if (run.recovered)
    bench.record({
      ...less,
      what: "released and vacuumed: claim p50",
      unit: "ms",
      value: run.recovered.claimP50Ms,
    });
  if (run.costBefore && run.costAfter) {
    const growth = run.costAfter.ms / run.costBefore.ms;
    bench.record({
      ...less,
      what: "pinned: server time of a claim of 1, end to start",
      unit: "×",
      value: growth,
    });
    bench.record({
      ...less,
      what: "pinned: buffers of a claim of 1",
      unit: "buffers",
      value: run.costAfter.buffers,
    });
  }
}
