// The actors of the flows' gate, except its workers. Each call does one thing and answers with the milliseconds to wait before
// the next call.
import { setTimeout as wait } from "node:timers/promises";
import type pg from "pg";
import { differences } from "../../support/balance.ts";
import { type FlowRequest, flowJobsOf } from "../../support/flow-jobs.ts";
import type { SeededRandom } from "../../support/seeded-random.ts";
import { wrongKeys } from "../../support/turns.ts";
import type { Verbs } from "../../support/verbs.ts";
import { wrongLinks } from "../../support/waits.ts";
import { inTransaction } from "../gate/gate-sql.ts";
import { bringForward, expireLeases } from "../gate/gate-time.ts";
import { count, type FlowsGate } from "./flows-gate.ts";

export type Actor = (gate: FlowsGate, random: SeededRandom) => Promise<number>;

export const queues = ["a", "b"] as const;

/** A queue that is new to the engine, and soon replaced by the next one: nobody has waited for its jobs before. */
export const newQueue = ({ known }: FlowsGate, random: SeededRandom) =>
  `new${Math.floor(known.length / 25) - random.int(0, 1)}`;
const rollbackShare = 0.1;

/** Jobs that wait for any of those before them, for recent jobs outside, or for nothing. */
function randomFlow({ known }: FlowsGate, random: SeededRandom): FlowRequest[] {
  const size = random.int(1, 14);
  const fanIn = random.isLikely(0.3);
  return Array.from({ length: size }, (_, index): FlowRequest => {
    const inside = Array.from(
      { length: fanIn && index === size - 1 ? index : random.int(0, Math.min(index, 3)) },
      (__, n) => (fanIn && index === size - 1 ? `${n}` : `${random.int(0, index - 1)}`),
    );
    const outside = random.isLikely(0.2) ? recent(known, random, 2).map((id) => ({ job_id: id })) : [];
    const after = [...inside, ...outside];
    return {
      ref: `${index}`,
      ...{ queue: random.pick(queues), max_attempts: random.int(1, 3) },
      ...(after.length > 0 ? waiting(after, random.isLikely(0.7)) : {}),
      ...(random.isLikely(0.1) ? { delay_seconds: random.next() / 4 } : {}),
      ...(random.isLikely(0.05) ? { expires_at: new Date(Date.now() + random.int(400, 3000)) } : {}),
      ...(random.isLikely(0.1) ? { partition_key: `k${random.int(1, 3)}`, queue: "b" } : {}),
    };
  });
}

/** The name says what the death of a blocker does to the job. */
const waiting = (after: readonly unknown[], dies: boolean) => {
  const name = dies ? "die" : "run";
  return { after, on_blocker_dead: name, payload: { name } } as const;
};

export const recent = (known: readonly string[], random: SeededRandom, most: number) =>
  Array.from({ length: Math.min(most, known.length) }, () =>
    String(known[known.length - 1 - random.int(0, Math.min(known.length, 60) - 1)]),
  );

/** Enqueues in a transaction that stays open for a while. */
async function produce(
  gate: FlowsGate,
  random: SeededRandom,
  work: (client: pg.ClientBase) => Promise<{ ids: string[]; flow?: string }>,
): Promise<number> {
  const isCommitted = !random.isLikely(rollbackShare);
  const { ids, flow } = await inTransaction(gate.pool, { isCommitted }, async (client) => {
    const made = await work(client);
    await wait(random.next() ** 3 * gate.load.openMs);
    return made;
  });
  if (isCommitted) {
    gate.known.push(...ids);
    if (flow) gate.flows.push(flow);
  }
  return random.int(5, 40);
}

const flowProducer: Actor = (gate, random) =>
  produce(gate, random, async (client) => {
    const { ids, flowId } = await flowJobsOf(client).flow(...randomFlow(gate, random));
    count(gate, "flows");
    return { ids: Object.values(ids), flow: flowId };
  });

/** Plain jobs, and single jobs that wait for what is there. */
const plainProducer: Actor = (gate, random) =>
  produce(gate, random, async (client) => {
    const jobs = flowJobsOf(client);
    const ids: string[] = [];
    for (let n = random.int(1, 6); n > 0; n--) {
      const after = random.isLikely(0.4) ? [...recent(gate.known, random, 3), ...ids.slice(0, 1)] : [];
      const name = after.length === 0 ? "plain" : random.isLikely(0.5) ? "die" : "run";
      const options = after.length > 0 ? { after, on_blocker_dead: name } : {};
      const queue = after.length === 0 && random.isLikely(0.4) ? newQueue(gate, random) : random.pick(queues);
      ids.push(await jobs.add(name, { queue, max_attempts: 2, ...options }));
    }
    return { ids };
  });

/** Cancels a job or a whole flow; the transaction stays open, and often it is rolled back. */
const canceller: Actor = async (gate, random) => {
  const isCommitted = random.isLikely(0.4);
  await inTransaction(gate.pool, { isCommitted }, async (client) => {
    const [job] = recent(gate.known, random, 1);
    const flow = gate.flows.at(-random.int(1, 10));
    if (flow && random.isLikely(0.4)) await client.query("select sluice.cancel_flow('gate', $1)", [flow]);
    else if (job) await flowJobsOf(client).cancel(job);
    count(gate, isCommitted ? "cancels" : "cancels rolled back");
    await wait(random.next() ** 2 * 200);
  });
  return random.int(20, 120);
};

const resolver: Actor = async (gate, random) => {
  const [id] = recent(gate.known, random, 1);
  if (id) {
    gate.resolved.add(id);
    if (await flowJobsOf(gate.pool).resolve(id, { resolved: true })) count(gate, "resolves");
  }
  return random.int(20, 80);
};

const sender: Actor = async (gate, random) => {
  const [key] = [...gate.signals].slice(-random.int(1, 5));
  if (key)
    await inTransaction(gate.pool, { isCommitted: random.isLikely(0.9) }, async (client) => {
      if (await flowJobsOf(client).signal("go", key)) count(gate, "signals");
      await wait(random.next() ** 3 * 100);
    });
  return random.int(2, 20);
};

const operator: Actor = async (gate, random) => {
  const { rows } = await gate.pool.query<{ id: string }>(
    "select id from sluice.closed where status = 'dead' order by random() limit 3",
  );
  for (const { id } of rows) {
    if (random.isLikely(0.1)) await flowJobsOf(gate.pool).discard(id);
    else if (await flowJobsOf(gate.pool).replay(id)) count(gate, "replays");
  }
  return random.int(10, 60);
};

const reaper: Actor = async (gate, random) => {
  const { pool } = gate;
  await expireLeases(pool, { share: 0.03 });
  await pool.query("select sluice.reap_leases(50)");
  await pool.query("select sluice.reap_expired(50)");
  await pool.query("select sluice.resolve_queues()");
  gate.checks.swept += (await pool.query("select sluice.sweep_blocked(200) as n")).rows[0].n;
  await pool.query("select sluice.advance_cursors()");
  if (random.isLikely(0.3)) await pool.query("select sluice.fold_flows(100)");
  if (random.isLikely(0.1)) await pool.query("select sluice.fold_ledger(1000)");
  if (random.isLikely(0.3)) await bringForward(pool);
  return random.int(20, 100);
};

/** Removes what ended longer ago than any transaction has been open, and deletes flows that nobody names any more. */
const retention: Actor = async (gate, random) => {
  const flow = gate.flows.at(-random.int(30, 120));
  if (
    flow &&
    (await flowJobsOf(gate.pool).value("select sluice.delete_flow('gate', $1)", [flow])) === "deleted"
  )
    count(gate, "deletes");
  const seconds = (4 * gate.load.openMs) / 1000;
  const keep = `make_interval(secs => ${seconds})`;
  const { rows } = await gate.pool.query(`select sluice.prune(100, ${keep}, 2 * ${keep}) as pruned`);
  if (rows[0].pruned > 0) count(gate, "prunes");
  return random.int(50, 200);
};

/** Jobs of a day that has a partition are dropped with it, and all others are pruned. So there is no day for the gate's jobs. */
export async function dropToday(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits
     where inhparent in ('sluice.job'::regclass, 'sluice.done'::regclass)
       and inhrelid::regclass::text ~ to_char(now() at time zone 'utc', 'YYYYMMDD')`,
  );
  for (const { name } of rows) await pool.query(`drop table ${name}`);
}

export async function check(gate: FlowsGate): Promise<void> {
  const query = async (text: string) => (await gate.pool.query(text)).rows;
  const wrong = [
    ...(await wrongLinks(gate.pool, { isPruned: true })),
    ...(await differences({ query } as unknown as Verbs, { isPruned: true })),
    ...(await wrongKeys(gate.pool)),
  ];
  gate.checks.made++;
  gate.checks.wrong.push(...wrong);
}

const checker: Actor = async (gate) => {
  await check(gate);
  return 150;
};

export const actors = {
  ...{ flowProducer, plainProducer, canceller, resolver, sender, operator, reaper, retention, checker },
};
