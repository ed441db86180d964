// The end of the gate: time moves forward until nothing more can be claimed, and then every job is counted.
import { claim, reapLeases, settle } from "../../../src/core/sql/index.ts";
import { createRandom } from "../../support/seeded-random.ts";
import type { Gate } from "./gate.ts";
import { checker, gateTypes } from "./gate-actors.ts";
import { runOn } from "./gate-sql.ts";
import { bringForward, expireLeases } from "./gate-time.ts";

export interface GateCount {
  /** Jobs that were committed and are neither completed nor closed: no claim finds them. */
  lost: number;
  /** Jobs that ended in two tables, or were completed twice. */
  duplicated: number;
  /** Jobs that exist although their transaction was rolled back. */
  phantom: number;
  /** Settlements that were applied more than once. */
  appliedTwice: number;
  /** Jobs that are completed by the answers but not in the table, or the reverse. */
  misreported: number;
}

/** A gap closes at the advance after its transaction ends. After this many rounds without a job, the rest is lost. */
const idleRounds = 5;
const batch = 500;

export async function driveToTheEnd(gate: Gate): Promise<GateCount> {
  for (let idle = 0; idle < idleRounds; ) {
    await expireLeases(gate.pool, { share: 1 });
    await runOn(gate.pool, reapLeases({ limit: 100_000 }));
    await bringForward(gate.pool);
    await gate.pool.query("select sluice.advance_cursors()");
    idle = (await completeAll(gate)) > 0 ? 0 : idle + 1;
  }
  await checker(gate, createRandom(0));
  return count(gate);
}

async function completeAll(gate: Gate): Promise<number> {
  const wanted = claim({ queue: "default", types: gateTypes, limit: batch, leaseSeconds: 60 });
  for (let found = 0; ; ) {
    const { jobs } = await runOn(gate.pool, wanted);
    if (jobs.length === 0) return found;
    found += jobs.length;
    for (const { id } of jobs) gate.completed.set(id, (gate.completed.get(id) ?? 0) + 1);
    await runOn(gate.pool, settle(jobs.map((job) => ({ job, outcome: { kind: "complete", output: null } }))));
  }
}

async function count({ pool, committed, applied, completed }: Gate): Promise<GateCount> {
  const { rows } = await pool.query(`
    select (select coalesce(array_agg(id), '{}') from sluice.job) as jobs,
           (select coalesce(array_agg(id), '{}') from sluice.done cross join unnest(ids) as id) as done,
           (select coalesce(array_agg(id), '{}') from sluice.closed) as closed`);
  const { jobs, done, closed } = rows[0] as { jobs: string[]; done: string[]; closed: string[] };
  const ended = [...done, ...closed];
  const endedOnce = new Set(ended);
  const doneOnce = new Set(done);
  return {
    lost: [...committed].filter((id) => !endedOnce.has(id)).length,
    duplicated: ended.length - endedOnce.size,
    phantom: [...jobs, ...ended].filter((id) => !committed.has(id)).length,
    appliedTwice: [...applied.values()].filter((times) => times > 1).length,
    misreported:
      [...completed].filter(([id, times]) => times > 1 || !doneOnce.has(id)).length +
      done.filter((id) => !completed.has(id)).length,
  };
}
