// keys, under a pin: a transaction that has enqueued stays open, so it holds a place in the order and a snapshot. Meanwhile
// jobs go through, two of five in one key. It compares a claim of one job before and after, for a new key, a used one and
// the hot one: its buffers, and the CPU time of its session. Only for Sluice: peers do not document which statement is
// their claim.
import { connect } from "../systems/connections.ts";
import { type ClaimCost, claimCost } from "../systems/sluice-claim-cost.ts";
import { churn } from "./churn.ts";
import { createRunLog, type RunLog } from "./run-log.ts";
import { type Bench, entriesWith, inTurns, type Trial } from "./workload.ts";

const sizes = {
  full: { jobs: 300_000, keys: 10_000, warmUp: 10_000 },
  quick: { jobs: 12_000, keys: 1_000, warmUp: 1_000 },
  smoke: { jobs: 1_000, keys: 100, warmUp: 500 },
};
const kinds = ["a new key", "a used key", "the hot key"] as const;
type Kind = (typeof kinds)[number];
const hotKey = "hot";
const patienceMs = 300_000;

export async function pinKeys(bench: Bench): Promise<void> {
  const { jobs, keys, warmUp } = sizes[bench.size];
  const entries = entriesWith(bench, { use: "ordered" }).filter(({ system }) => system.name === "sluice");
  await inTurns(bench, { name: "keys, pinned", rounds: 1, entries }, async (trial) => {
    const log = createRunLog((n) => (n % 5 < 2 ? hotKey : usedKey(n % keys)));
    await churnAll(trial, log, warmUp);
    const before = await costs(trial, "before");
    const release = await holdOrder(trial.url);
    await churnAll(trial, log, jobs);
    const after = await costs(trial, "after");
    await release();
    for (const kind of kinds) record(bench, kind, before[kind], after[kind]);
    return kinds.map((kind) => `${kind}: ${told(before[kind])} → ${told(after[kind])}`).join(", ");
  });
}

const usedKey = (n: number) => `customer-${n}`;

/** Nothing waits when it returns. */
async function churnAll(trial: Trial, log: RunLog, jobs: number): Promise<void> {
  const giveUpMs = performance.now() + patienceMs;
  await churn(trial, log, { jobs, mark: jobs, giveUpMs }, () => {});
  const worker = await trial.queue.work({ batch: 100, connections: 2, run: log.run });
  await log.allRun().finally(() => worker.stop());
}

async function costs({ url }: Trial, when: string): Promise<Record<Kind, ClaimCost>> {
  const of = (keyOf: (n: number) => string) =>
    claimCost(url, (n) => JSON.stringify([{ type: "mail", payload: { n }, partition_key: keyOf(n) }]));
  return {
    "a new key": await of((n) => `${when}-${n}`),
    "a used key": await of(usedKey),
    "the hot key": await of(() => hotKey),
  };
}

async function holdOrder(url: string): Promise<() => Promise<void>> {
  const client = await connect(url);
  await client.query("begin isolation level repeatable read");
  await client.query("select sluice.enqueue('mail', partition_key => $1)", [hotKey]);
  return async () => {
    await client.query("rollback");
    await client.end();
  };
}

function record(bench: Bench, kind: Kind, before: ClaimCost, after: ClaimCost): void {
  const common = { workload: "keys", better: "less", system: "sluice" } as const;
  const what = (of: string) => `keys, pinned: ${of} of a claim of 1, ${kind}`;
  bench.record({ ...common, what: what("buffers"), unit: "buffers", value: after.buffers });
  bench.record({
    ...common,
    what: `${what("CPU of the server")}, end to start`,
    unit: "×",
    value: after.cpuMs / before.cpuMs,
  });
}

function told({ cpuMs, buffers }: ClaimCost): string {
  return `${cpuMs.toFixed(2)} ms, ${buffers} buffers`;
}
