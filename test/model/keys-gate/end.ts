// The end of the keys' gate: nothing holds jobs back any more, and all of them are claimed and completed.
import { claim, reapExpired, reapLeases } from "../../../src/core/sql/index.ts";
import { createRandom } from "../../support/seeded-random.ts";
import { runOn } from "../gate/gate-sql.ts";
import { bringForward, expireLeases } from "../gate/gate-time.ts";
import { checker, gateTypes } from "./actors.ts";
import { send } from "./claimer.ts";
import type { KeysGate } from "./keys-gate.ts";

/** A gap closes at the advance after its transaction ends. After this many rounds without a job, the rest is lost. */
const idleRounds = 5;

export async function endAll(gate: KeysGate): Promise<void> {
  const { pool, history } = gate;
  await pool.query("delete from sluice.pause");
  for (let idle = 0; idle < idleRounds; ) {
    await expireLeases(pool, { share: 1 });
    await runOn(pool, reapLeases({ limit: 100_000 }));
    await runOn(pool, reapExpired({ limit: 100_000 }));
    await bringForward(pool);
    await pool.query("select sluice.advance_cursors()");
    const { rows } = await pool.query(
      "select id from sluice.closed where status = 'dead' and key is not null",
    );
    for (const { id } of rows as { id: string }[]) {
      history.touch(id);
      await pool.query("select sluice.discard('ann', $1)", [id]);
    }
    let found = rows.length;
    for (const queue of Object.keys(gate.queues)) found += await completeAll(gate, queue);
    idle = found > 0 ? 0 : idle + 1;
  }
  await checker(gate, createRandom(0));
}

async function completeAll(gate: KeysGate, queue: string): Promise<number> {
  const policy = { ...gate.queues[queue]?.policy };
  const wanted = claim({ queue, types: gateTypes, limit: 500, leaseSeconds: 60, run: 20, policy });
  for (let found = 0; ; ) {
    const { jobs } = await runOn(gate.pool, wanted);
    if (jobs.length === 0) return found;
    found += jobs.length;
    gate.history.addStarts(jobs);
    await send(
      gate,
      jobs.map((job) => ({ job, outcome: { kind: "complete", output: null } })),
    );
  }
}
