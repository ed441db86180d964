// shares: keys take turns. A tenant has 100,000 jobs waiting, then another one enqueues ten: what comes before the ten?
// And what do turns between 1,000 tenants cost, beside plain jobs?
import { type Keys, producers } from "../systems/system.ts";
import { drainBesidePlain } from "./drain-beside-plain.ts";
import { fill } from "./fill-and-drain.ts";
import { createRunLog, type RunLog, until } from "./run-log.ts";
import { settleDown } from "./settle-down.ts";
import { type Bench, entriesWith, inTurns, type Trial, type Workload } from "./workload.ts";

const sizes = {
  full: { big: 100_000, known: 2_000 },
  quick: { big: 10_000, known: 500 },
  smoke: { big: 400, known: 100 },
};
const drainSizes = {
  full: { rounds: 3, keys: 1_000, jobs: 30_000, mostMs: 10_000 },
  quick: { rounds: 1, keys: 1_000, jobs: 10_000, mostMs: 5_000 },
  smoke: { rounds: 1, keys: 20, jobs: 200, mostMs: 10_000 },
};
const few = 10;
const cap = 4;
const batch = 100;

/** How the jobs of the big tenant came, and whether claims have seen some of them. */
const states = [
  { name: "new, by 100", perCall: 100, isKnown: false },
  { name: "new, one by one", perCall: 1, isKnown: false },
  { name: "known", perCall: 100, isKnown: true },
] as const;
type State = (typeof states)[number];

export const shares: Workload = {
  name: "shares",
  about: "fair shares: ten jobs behind 100,000 of another tenant; 1,000 tenants",
  async run(bench) {
    for (const keys of [{ use: "shared" }, { use: "shared", cap }] satisfies Keys[])
      for (const state of states) await tenBehindMany(bench, keys, state);
    const size = drainSizes[bench.size];
    const what = `${size.keys.toLocaleString("en")} tenants`;
    await drainBesidePlain(bench, { ...size, workload: "shares", what, use: "shared" });
  },
};

async function tenBehindMany(bench: Bench, keys: Keys, state: State): Promise<void> {
  const { big, known } = sizes[bench.size];
  const name = `ten behind ${big.toLocaleString("en")} ${state.name}${keys.cap ? `, cap ${cap}` : ""}`;
  // A peer reads nothing ahead, so one state says all about it. No peer has both turns and a cap.
  const isOwnOnly = keys.cap !== undefined || state !== states[0];
  const entries = entriesWith(bench, keys).filter(({ system }) => system.name === "sluice" || !isOwnOnly);
  await inTurns(bench, { name: `shares, ${name}`, rounds: 1, entries }, async (trial) => {
    const log = createRunLog((n) => (n < big ? "big" : "small"));
    await fill(trial.queue, log, { jobs: big, size: state.perCall, callers: producers });
    await settleDown(trial.url);
    if (state.isKnown) await workSome(trial, log, known);
    await trial.queue.enqueue(log.next(few));
    const waited = await waitForFew(trial, big);
    const common = { workload: "shares", better: "less", system: trial.system.name } as const;
    bench.record({
      ...common,
      what: `${name}: claims until they start`,
      unit: "claims",
      value: waited.claims,
    });
    bench.record({ ...common, what: `${name}: others before them`, unit: "jobs", value: waited.others });
    bench.record({ ...common, what: `${name}: time until they start`, unit: "ms", value: waited.ms });
    return `${waited.claims} claims, ${waited.others} jobs, ${waited.ms.toFixed(0)} ms`;
  });
}

async function workSome({ queue }: Trial, log: RunLog, jobs: number): Promise<void> {
  const worker = await queue.work({ batch, connections: 1, run: log.run });
  await until(() => log.completed() >= jobs).finally(() => worker.stop());
}

interface Waited {
  claims: number;
  others: number;
  ms: number;
}

/** Until the last of the ten is claimed. */
async function waitForFew({ queue }: Trial, big: number): Promise<Waited> {
  const waited = { claims: 0, others: 0, ms: 0 };
  let left = few;
  const startedMs = performance.now();
  const worker = await queue.work({
    ...{ batch, connections: 1 },
    onClaim: () => void (left > 0 && waited.claims++),
    run({ n }) {
      if (n >= big && --left === 0) waited.ms = performance.now() - startedMs;
      if (n < big && left > 0) waited.others++;
      return true;
    },
  });
  await until(() => left === 0).finally(() => worker.stop());
  return waited;
}
