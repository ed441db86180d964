// The actors of the keys' gate, except its claimers. Each call does one thing and answers with the milliseconds to wait before
// the next call.
import { setTimeout as wait } from "node:timers/promises";
import type pg from "pg";
import type { NewJob } from "../../../src/core/job.ts";
import {
  cancel,
  checkReach,
  discard,
  enqueue,
  enqueueOne,
  pause,
  reapExpired,
  reapLeases,
  replay,
  resume,
} from "../../../src/core/sql/index.ts";
import { differences } from "../../support/balance.ts";
import type { SeededRandom } from "../../support/seeded-random.ts";
import { wrongKeys } from "../../support/turns.ts";
import type { Verbs } from "../../support/verbs.ts";
import { inTransaction, runOn } from "../gate/gate-sql.ts";
import { bringForward, expireLeases } from "../gate/gate-time.ts";
import type { KnownJob } from "./history.ts";
import type { KeyedQueue, KeysGate } from "./keys-gate.ts";

export type Actor = (gate: KeysGate, random: SeededRandom) => Promise<number>;

const rollbackShare = 0.1;
const fewKeys = 12;
const shortestOpenMs = 5;
export const gateTypes = ["a", "b"] as const;
let transactions = 0;

/** Enqueues several times in one transaction, which stays open meanwhile. */
const enqueuer: Actor = async (gate, random) => {
  const openMs = shortestOpenMs * (gate.load.openMs / shortestOpenMs) ** random.next();
  const isCommitted = !random.isLikely(rollbackShare);
  const calls = random.int(1, 3);
  const known: Omit<KnownJob, "committedAt">[] = [];
  const transaction = ++transactions;
  await inTransaction(gate.pool, { isCommitted }, async (client) => {
    for (let call = 0; call < calls; call++) {
      for (const job of await enqueueSome(gate, random, client))
        known.push({ ...job, transaction, index: known.length });
      await wait(openMs / calls);
    }
  });
  const committedAt = performance.now();
  for (const job of known) {
    if (isCommitted) gate.history.committed.set(job.id, { ...job, committedAt });
    else gate.history.rolledBack.add(job.id);
  }
  return random.int(1, 20);
};

async function enqueueSome(gate: KeysGate, random: SeededRandom, client: pg.ClientBase) {
  const queue = random.pick(Object.keys(gate.queues) as [string, ...string[]]);
  const { oneLane } = gate.queues[queue] as KeyedQueue;
  const burst = !oneLane && random.isLikely(0.5) ? pickKey(gate, random) : null;
  const keys = oneLane === "few keys" ? fewKeys : 20 * gate.load.keys;
  const anyKey = () => (oneLane ? `k${random.int(0, keys)}` : pickKey(gate, random));
  const count = oneLane && random.isLikely(0.2) ? random.int(30, 60) : random.int(1, 6);
  const jobs = Array.from({ length: count }, () => newJob(gate, random, { queue, key: burst ?? anyKey() }));
  const begunAt = performance.now();
  const [first] = jobs;
  const ids =
    jobs.length === 1 && first
      ? [await runOn(client, enqueueOne(first))]
      : (await runOn(client, enqueue(jobs))).map(({ id }) => id);
  return ids.map((id, index) => {
    const { partitionKey, fairKey, delaySeconds, expiresAt } = jobs[index] as NewJob;
    if (expiresAt) gate.history.touch(id);
    return { id, queue, key: partitionKey ?? fairKey ?? null, begunAt, isDelayed: Boolean(delaySeconds) };
  });
}

/** The first keys have most of the jobs, and the last ones are idle most of the time. */
function pickKey(gate: KeysGate, random: SeededRandom): string {
  return `k${Math.floor(random.next() ** 3 * gate.load.keys)}`;
}

function newJob(
  gate: KeysGate,
  random: SeededRandom,
  { queue, key }: { queue: string; key: string },
): NewJob {
  const { field, oneLane } = gate.queues[queue] as KeyedQueue;
  const text = random.isLikely(0.2) ? "x".repeat(1500) : "";
  return {
    ...{
      queue,
      type: oneLane ? "a" : random.pick(gateTypes as readonly [string, ...string[]]),
      payload: { text },
    },
    ...{ priority: oneLane ? 5 : random.pick([5, 5, 5, 7, 3]), maxAttempts: random.int(2, 6) },
    ...(!oneLane && random.isLikely(0.05) ? {} : { [field]: key }),
    ...(random.isLikely(0.1) ? { delaySeconds: random.next() } : {}),
    ...(random.isLikely(0.05) ? { expiresAt: new Date(Date.now() + random.int(20, 2000)) } : {}),
  };
}

/** Cursors are rows, so a rollback must undo their advance together with the gaps that were noted. */
const ticker: Actor = async (gate, random) => {
  await inTransaction(gate.pool, { isCommitted: random.isLikely(0.6) }, async (client) => {
    await client.query("select sluice.advance_cursors()");
    await wait(random.int(0, 10));
  });
  if (random.isLikely(0.1)) gate.checks.unreachable += await runOn(gate.pool, checkReach());
  return random.int(1, 30);
};

/** Makes leases run out, also of workers that are alive, reaps them, and shortens the longest waits. */
const reaper: Actor = async (gate, random) => {
  const keys = gate.abandoned.map((job) => job.leaseKey);
  await expireLeases(gate.pool, { keys, share: 0.02 });
  await inTransaction(gate.pool, { isCommitted: !random.isLikely(rollbackShare) }, async (client) => {
    await runOn(client, reapLeases({ limit: 1000 }));
    await wait(random.int(0, 5));
  });
  await bringForward(gate.pool, "1 second");
  return random.int(20, 100);
};

/** Cancels a job that waits, keeps the cancel open for a while, and often takes it back. */
const canceller: Actor = async (gate, random) => {
  const { rows } = await gate.pool.query(`
    select id from sluice.ready where returned is null and key is not null order by random() limit 1`);
  const id = rows[0]?.id as string | undefined;
  if (id === undefined) return 20;
  const isCommitted = random.isLikely(0.4);
  if (isCommitted) gate.history.touch(id);
  await inTransaction(gate.pool, { isCommitted }, async (client) => {
    await runOn(client, cancel(id));
    await wait(random.int(1, 150));
  });
  return random.int(1, 30);
};

const operator: Actor = async ({ pool, history }, random) => {
  const { rows } = await pool.query(
    "select id from sluice.closed where status = 'dead' order by random() limit 4",
  );
  for (const { id } of rows as { id: string }[]) {
    history.touch(id);
    const isCommitted = !random.isLikely(rollbackShare);
    const isReplay = random.isLikely(0.6);
    await inTransaction(pool, { isCommitted }, (client) =>
      runOn(client, isReplay ? replay("ann", { id }) : discard("ann", { id })),
    );
  }
  return random.int(10, 60);
};

const expirer: Actor = async (gate, random) => {
  await inTransaction(gate.pool, { isCommitted: !random.isLikely(rollbackShare) }, (client) =>
    runOn(client, reapExpired({ limit: 100 })),
  );
  return random.int(30, 120);
};

const pauser: Actor = async (gate, random) => {
  const target = random.isLikely(0.5)
    ? { type: random.pick(gateTypes as readonly [string, ...string[]]) }
    : { queue: random.pick(Object.keys(gate.queues) as [string, ...string[]]) };
  await runOn(gate.pool, pause("ann", target));
  await wait(random.int(5, 80));
  await runOn(gate.pool, resume("ann", target));
  return random.int(200, 600);
};

/** A deployment with other settings: `block` never changes. */
const changer: Actor = async ({ queues: { pass, capped } }, random) => {
  if (pass) pass.policy.onDead = random.pick(["pass", "pass", "block"]);
  if (capped) capped.policy.concurrency = random.pick([3, 3, 2]);
  return random.int(100, 500);
};

/** Every rule that holds in each snapshot. */
export const checker: Actor = async ({ pool, checks, queues }) => {
  const verbs = { query: async (text: string) => (await pool.query(text)).rows } as unknown as Verbs;
  checks.wrong.push(...(await wrongKeys(pool)), ...(await differences(verbs)));
  const { rows } = await pool.query(
    `select lane.queue, held.key::text, count(distinct lease.key)::int as leases, count(*)::int as jobs
     from sluice.lease join sluice.lane using (lane) cross join lateral unnest(keys) as held(key)
     where held.key is not null
     group by lane.queue, held.key, lane.kind
     having (lane.kind = 'ordered' and count(distinct lease.key) > 1) or (lane.queue = 'capped' and count(*) > $1)`,
    [queues.capped?.cap],
  );
  checks.wrong.push(...rows);
  checks.made++;
  return 300;
};

export const actors = {
  ...{ enqueuer, ticker, reaper, canceller, operator },
  ...{ expirer, pauser, changer, checker },
};
