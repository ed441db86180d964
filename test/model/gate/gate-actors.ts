// The actors of the gate. Each call does one thing and answers with the milliseconds to wait before the next call.
import { setTimeout as wait } from "node:timers/promises";
import type pg from "pg";
import type { NewJob } from "../../../src/core/job.ts";
import { enqueue } from "../../../src/core/sql/enqueue.ts";
import { cancel, discard, enqueueMany, enqueueOne, reapLeases, replay } from "../../../src/core/sql/index.ts";
import type { SeededRandom } from "../../support/seeded-random.ts";
import type { Gate } from "./gate.ts";
import { claimAndSettle } from "./gate-claimer.ts";
import { inTransaction, runOn } from "./gate-sql.ts";
import { bringForward, expireLeases } from "./gate-time.ts";

type Actor = (gate: Gate, random: SeededRandom) => Promise<number>;

const rollbackShare = 0.1;
const tickRollbackShare = 0.6;
const shortestOpenMs = 20;
const restMs = { enqueuer: 5, ticker: 15, reaper: 80, operator: 40, folder: 50, checker: 30 };

export const gateTypes = ["a", "b"] as const;

/** Opens a transaction and enqueues several times while it stays open. */
const enqueuer: Actor = async (gate, random) => {
  const openMs = shortestOpenMs * (gate.load.openMs / shortestOpenMs) ** random.next();
  const calls = random.int(1, 4);
  const ids: string[] = [];
  const isCommitted = !random.isLikely(rollbackShare);
  await inTransaction(gate.pool, { isCommitted }, async (client) => {
    for (let call = 0; call < calls; call++) {
      ids.push(...(await enqueueSome(gate, random, client)));
      await wait(openMs / calls);
    }
  });
  for (const id of ids) (isCommitted ? gate.committed : gate.rolledBack).add(id);
  return restMs.enqueuer;
};

async function enqueueSome(gate: Gate, random: SeededRandom, client: pg.ClientBase): Promise<string[]> {
  const count = random.int(1, gate.load.jobsPerCall);
  const job = newJob(gate, random);
  const way = random.pick(["one", "many", "mixed"]);
  if (way === "one") return [await runOn(client, enqueueOne(job))];
  if (way === "many") {
    const payloads = Array.from({ length: count }, () => ({}));
    return runOn(
      client,
      enqueueMany(job.type, payloads, { priority: 5, delaySeconds: job.delaySeconds ?? null }),
    );
  }
  const jobs = Array.from({ length: count }, () => newJob(gate, random));
  return (await runOn(client, enqueue(jobs))).map((enqueued) => enqueued.id);
}

function newJob(gate: Gate, random: SeededRandom): NewJob {
  const lane = random.int(0, gate.load.lanes - 1);
  return {
    type: gateTypes[lane % 2] ?? "a",
    payload: {},
    priority: lane < 2 ? 5 : 3,
    delaySeconds: random.isLikely(0.3) ? random.next() * 2 : null,
  };
}

const claimer: Actor = claimAndSettle;

/** Cursors are rows, so a rollback must undo their advance together with the gaps that were noted. */
const ticker: Actor = async (gate, random) => {
  const isCommitted = !random.isLikely(tickRollbackShare);
  await inTransaction(gate.pool, { isCommitted }, async (client) => {
    await client.query("select sluice.advance_cursors()");
    await wait(random.int(0, 10));
  });
  gate.ticks[isCommitted ? "committed" : "rolledBack"]++;
  return random.int(1, restMs.ticker);
};

/** Makes leases run out, also of workers that are alive, reaps them, and shortens the longest waits. */
const reaper: Actor = async (gate, random) => {
  const keys = gate.abandoned.map((job) => job.leaseKey);
  await expireLeases(gate.pool, { keys, share: 0.02 });
  await inTransaction(gate.pool, { isCommitted: !random.isLikely(rollbackShare) }, (client) =>
    runOn(client, reapLeases({ limit: 1000 })),
  );
  await bringForward(gate.pool, "2 seconds");
  return restMs.reaper;
};

const operator: Actor = async ({ pool, committed }, random) => {
  const ids = [...committed];
  const id = ids[random.int(0, ids.length - 1)];
  if (id !== undefined) await runOn(pool, cancel(id));
  const { rows } = await pool.query(
    "select id from sluice.closed where status = 'dead' order by random() limit 3",
  );
  const dead = rows.map((row) => row.id as string);
  const isReplay = random.isLikely(0.8);
  for (const id of dead) await runOn(pool, isReplay ? replay("ann", { id }) : discard("ann", { id }));
  return restMs.operator;
};

const folder: Actor = async (gate, random) => {
  await inTransaction(gate.pool, { isCommitted: !random.isLikely(rollbackShare) }, (client) =>
    client.query("select sluice.fold_ledger($1)", [random.int(1, 500)]),
  );
  return restMs.folder;
};

/** Compares the books with the rows in one snapshot. */
export const checker: Actor = async (gate) => {
  const { rows } = await gate.pool.query(`
    select *
    from (select coalesce(sum(enqueued), 0)::int as enqueued, coalesce(sum(pending), 0)::int as pending,
                 coalesce(sum(leased), 0)::int as leased, coalesce(sum(completed), 0)::int as completed,
                 coalesce(sum(dead), 0)::int as dead, coalesce(sum(discarded), 0)::int as discarded,
                 coalesce(sum(cancelled), 0)::int as cancelled
          from sluice.books) as booked
    cross join (
      select (select count(*) from sluice.job)::int as jobs,
             (select count(*) from sluice.ready)::int + (select count(*) from sluice.scheduled)::int as pending_rows,
             (select coalesce(sum(cardinality(ids)), 0) from sluice.lease)::int as leased_rows,
             (select coalesce(sum(cardinality(ids)), 0) from sluice.done)::int as completed_rows,
             (select count(*) from sluice.closed)::int as closed_rows
    ) as counted
    where (enqueued, pending, leased, completed, dead + discarded + cancelled)
          is distinct from (jobs, pending_rows, leased_rows, completed_rows, closed_rows)
       or enqueued is distinct from completed + dead + discarded + cancelled + pending + leased`);
  gate.checks.unbalanced.push(...rows);
  gate.checks.made++;
  return restMs.checker;
};

export const actors = { enqueuer, claimer, ticker, reaper, operator, folder, checker };
