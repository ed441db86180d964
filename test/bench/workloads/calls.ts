// calls: what plain jobs cost the server, call by call: enqueue, claim and settle of 1 and of 100. With another checkout
// beside this one (--beside) the two take turns at every call, in databases of one server, so that both see the same load.
// CPU is the time that the session's process ran, which other load changes little. Buffers and log come from EXPLAIN, which
// costs time of its own, so it has rounds of its own.
import type pg from "pg";
import { claimText, enqueueText, heldJobs, newJobs, settleText, settleValues } from "../../support/churn.ts";
import { measure, median } from "../../support/explain.ts";
import { threadCpuMs } from "../../support/process-cpu.ts";
import { connect, pidOf } from "../systems/connections.ts";
import type { System } from "../systems/system.ts";
import { type Bench, ownEntries, type Workload } from "./workload.ts";

const sizes = {
  full: { rounds: 600, backlog: 20_000 },
  quick: { rounds: 100, backlog: 2_000 },
  smoke: { rounds: 4, backlog: 200 },
};
const warmUps = 20;
/** Buffers and log hardly vary. */
const explainEvery = 5;
const batches = [1, 100];

export const calls: Workload = {
  name: "calls",
  about: "plain jobs: CPU, buffers and log of single calls; with --beside, in turns",
  async run(bench) {
    await withDatabases(
      bench,
      ownEntries(bench).map(({ system }) => system),
      [],
      async (sessions) => {
        const { rounds, backlog } = sizes[bench.size];
        for (const session of sessions) await prepare(session.client, backlog);
        for (let round = 0; round < warmUps + rounds; round++) {
          const order = round % 2 === 0 ? sessions : sessions.toReversed();
          for (const batch of batches)
            for (const step of steps) for (const session of order) await step(session, { batch, round });
        }
        for (const session of sessions) record(bench, session);
      },
    );
  },
};

interface Session {
  system: System;
  client: pg.Client;
  pid: number;
  costs: Map<string, { cpu: number[]; buffers: number[]; log: number[] }>;
}

/** A database and a session for each system, all at one time. */
async function withDatabases(
  bench: Bench,
  systems: readonly System[],
  sessions: readonly Session[],
  work: (sessions: readonly Session[]) => Promise<void>,
): Promise<void> {
  const [system, ...others] = systems;
  if (!system) return work(sessions);
  await bench.stage.withDatabase(system, async (url) => {
    const client = await connect(url);
    const session = { system, client, pid: await pidOf(client), costs: new Map() };
    await withDatabases(bench, others, [...sessions, session], work).finally(() => client.end());
  });
}

async function prepare(client: pg.Client, backlog: number): Promise<void> {
  for (let jobs = 0; jobs < backlog; jobs += 100) await client.query(enqueueText, [newJobs(100)]);
  await client.query("vacuum analyze");
}

interface CallOptions {
  batch: number;
  round: number;
}
type Step = (session: Session, call: CallOptions) => Promise<void>;

const steps: readonly Step[] = [
  (session, call) => timed(session, `enqueue ${call.batch}`, enqueueText, [newJobs(call.batch)], call),
  (session, call) => timed(session, `claim ${call.batch}`, claimText, [call.batch], call),
  async (session, call) => {
    const values = settleValues(await heldJobs(session.client));
    await timed(session, `settle ${call.batch}`, settleText, values, call);
  },
];

async function timed(
  { client, pid, costs }: Session,
  name: string,
  text: string,
  values: unknown[],
  { round }: CallOptions,
): Promise<void> {
  const cost = costs.get(name) ?? { cpu: [], buffers: [], log: [] };
  costs.set(name, cost);
  if (round % explainEvery === 0) {
    const { buffers, walBytes } = await measure(client, text, values);
    cost.buffers.push(buffers);
    cost.log.push(walBytes);
  } else {
    const before = threadCpuMs(pid);
    await client.query({ name: text.slice(0, 60), text, values });
    if (round >= warmUps) cost.cpu.push((threadCpuMs(pid) - before) * 1000);
  }
}

function record(bench: Bench, { system, costs }: Session): void {
  for (const [name, { cpu, buffers, log }] of costs) {
    const common = { workload: "calls", better: "less", system: system.name } as const;
    const of = (what: string, unit: string, values: readonly number[]) =>
      bench.record({ ...common, what: `${name} plain: ${what}`, unit, value: median(values) });
    of("CPU of the server", "µs", cpu);
    of("buffers", "buffers", buffers);
    of("log", "bytes", log);
  }
  const told = [...costs].map(([name, { cpu }]) => `${name}: ${median(cpu).toFixed(0)} µs`);
  bench.progress(`calls  ${system.name.padEnd(16)} ${told.join("  ")}`);
}
