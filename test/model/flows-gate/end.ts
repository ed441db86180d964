// The end of the flows' gate: no new jobs, every signal is sent, time passes, and workers complete all they get.
import { flowJobsOf } from "../../support/flow-jobs.ts";
import { bringForward, expireLeases } from "../gate/gate-time.ts";
import { check } from "./actors.ts";
import type { FlowsGate } from "./flows-gate.ts";
import { completeAll, noteEarly } from "./worker.ts";

const roundsWithoutProgress = 8;

export async function endAll(gate: FlowsGate): Promise<void> {
  const jobs = flowJobsOf(gate.pool);
  for (const key of gate.signals) await jobs.signal("go", key);
  let idle = 0;
  while (idle < roundsWithoutProgress) {
    await bringForward(gate.pool);
    await expireLeases(gate.pool, { share: 1 });
    await gate.pool.query("select sluice.reap_leases(1000), sluice.advance_cursors()");
    // A dead job blocks its partition key until somebody gives it up.
    await gate.pool.query("select sluice.discard('gate', id) from sluice.closed where key is not null");
    let claimed = 0;
    for (const { queue } of (
      await gate.pool.query<{ queue: string }>("select distinct queue from sluice.lane")
    ).rows) {
      const held = await jobs.claim({ queue, limit: 200, run: 10 });
      noteEarly(gate, held);
      claimed += held.length;
      await completeAll(gate, jobs, held);
    }
    idle = claimed === 0 ? idle + 1 : 0;
  }
  gate.checks.swept += (await gate.pool.query("select sluice.sweep_blocked(100000) as n")).rows[0].n;
  await check(gate);
}
