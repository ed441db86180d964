// keys, on the ring: a million jobs wait in 10,000 keys, and each of 16 workers claims the buckets that it owns. It compares
// a claim of 100 with one from all buckets: its CPU time on the server, one after another, and as 16 workers at once see it.
import type pg from "pg";
import { ownersOf, placeOf, type RingPlace } from "../../../src/core/policy/hash-ring.ts";
import { heldJobs, settleBatch } from "../../support/churn.ts";
import { measure, median } from "../../support/explain.ts";
import { threadCpuMs } from "../../support/process-cpu.ts";
import { connect, connectAll, pidOf } from "../systems/connections.ts";
import { poll } from "../systems/poll.ts";
import { connectionOf } from "../systems/sluice.ts";
import { fill } from "./fill-and-drain.ts";
import { createRunLog, type RunLog, until } from "./run-log.ts";
import { settleDown } from "./settle-down.ts";
import { type Bench, entriesWith, inTurns, type Trial } from "./workload.ts";

const sizes = {
  full: { keys: 10_000, jobs: 1_000_000, warmUps: 64, claims: 96, together: 100_000 },
  quick: { keys: 1_000, jobs: 50_000, warmUps: 16, claims: 32, together: 10_000 },
  smoke: { keys: 100, jobs: 4_000, warmUps: 8, claims: 2, together: 500 },
};
const batch = 100;
const workers = Array.from({ length: 16 }, (_, index) => `worker-${index}`);
type Place = RingPlace | null;
const ring: readonly Place[] = workers.map((worker) => placeOf(worker, ownersOf(workers)));
const noRing: readonly Place[] = workers.map(() => null);

export async function claimOnRing(bench: Bench): Promise<void> {
  const { keys, jobs, together, ...counts } = sizes[bench.size];
  const entries = entriesWith(bench, { use: "ordered" }).filter(({ system }) => system.name === "sluice");
  await inTurns(bench, { name: "keys, ring", rounds: 1, entries }, async (trial) => {
    const log = createRunLog((n) => `customer-${n % keys}`);
    await fill(trial.queue, log, { jobs, callers: 1 });
    await settleDown(trial.url);
    const client = await connect(trial.url);
    // First all without a ring: claims on it leave turns in the lanes, which every later claim would meet.
    const without = {
      one: await costOfClaims(client, noRing, counts),
      all: await workTogether(trial, log, noRing, together),
    };
    const onRing = {
      one: await costOfClaims(client, ring, counts),
      all: await workTogether(trial, log, ring, together),
    };
    await client.end();
    const one = { without: without.one, with: onRing.one };
    const all = { without: without.all, with: onRing.all };
    record(bench, `${jobs.toLocaleString("en")} waiting in ${keys.toLocaleString("en")} keys`, one, all);
    return (
      `a claim: ${one.without.cpuMs.toFixed(1)} → ${one.with.cpuMs.toFixed(1)} ms, ` +
      `${one.without.buffers} → ${one.with.buffers} buffers; ` +
      `16 workers: ${all.without.p50Ms.toFixed(0)} → ${all.with.p50Ms.toFixed(0)} ms, ` +
      `${all.without.jobsPerSecond.toFixed(0)} → ${all.with.jobsPerSecond.toFixed(0)}/s`
    );
  });
}

interface Cost {
  cpuMs: number;
  buffers: number;
}

/**
 * The median of single claims, the workers in turn. The first claims on a ring also give turns to the keys of all others,
 * until each key that waits has one.
 */
async function costOfClaims(
  client: pg.Client,
  places: readonly Place[],
  { warmUps, claims }: { warmUps: number; claims: number },
): Promise<Cost> {
  const pid = await pidOf(client);
  const costs: Cost[] = [];
  for (let n = 0; n < warmUps + claims; n++) {
    const text = `select sluice.claim('default', array['mail'], $1, 600, p_run => $1, p_buckets => $2, p_owners => $3)`;
    const before = threadCpuMs(pid);
    const place = places[n % places.length];
    const { buffers } = await measure(client, text, [batch, place?.buckets, place?.owners]);
    costs.push({ cpuMs: threadCpuMs(pid) - before, buffers });
    await settleBatch(client, await heldJobs(client));
  }
  const counted = costs.slice(warmUps);
  return {
    cpuMs: median(counted.map(({ cpuMs }) => cpuMs)),
    buffers: median(counted.map(({ buffers }) => buffers)),
  };
}

interface Together {
  p50Ms: number;
  jobsPerSecond: number;
}

/** All workers at once, until so many jobs have run. */
async function workTogether(
  { url }: Trial,
  log: RunLog,
  places: readonly Place[],
  jobs: number,
): Promise<Together> {
  const claims: number[] = [];
  const clients = await connectAll(url, places.length);
  const start = log.completed();
  const startedMs = performance.now();
  const worker = poll(
    clients.map((client, index) => connectionOf(client, { types: ["mail"], run: batch, ...places[index] })),
    { batch, connections: places.length, run: log.run, onClaim: ({ ms }) => void claims.push(ms) },
  );
  await until(() => log.completed() - start >= jobs).finally(() => worker.stop());
  const seconds = (performance.now() - startedMs) / 1000;
  return { p50Ms: median(claims), jobsPerSecond: (log.completed() - start) / seconds };
}

interface Compared<T> {
  without: T;
  with: T;
}

function record(bench: Bench, where: string, one: Compared<Cost>, all: Compared<Together>): void {
  const common = { workload: "keys", system: "sluice", better: "less" } as const;
  for (const side of ["without", "with"] as const) {
    const what = `${where}: a claim of ${batch} ${side} a ring`;
    bench.record({ ...common, what: `${what}, CPU of the server`, unit: "ms", value: one[side].cpuMs });
    bench.record({ ...common, what: `${what}, buffers`, unit: "buffers", value: one[side].buffers });
    bench.record({ ...common, what: `${what}, 16 workers, p50`, unit: "ms", value: all[side].p50Ms });
    bench.record({
      ...{ ...common, better: "more" },
      ...{ what: `${where}: 16 workers ${side} a ring`, unit: "jobs/s", value: all[side].jobsPerSecond },
    });
  }
  const times = {
    "CPU of the server": one.with.cpuMs / one.without.cpuMs,
    "16 workers, p50": all.with.p50Ms / all.without.p50Ms,
  };
  for (const [name, value] of Object.entries(times))
    bench.record({ ...common, what: `ring: a claim of ${batch}, ${name}, to one without`, unit: "×", value });
}
