// The server's cost of one claim of Sluice, as a median: time and buffers from EXPLAIN, and the CPU time of the session. It
// enqueues its own jobs and removes them.
import { heldJobs, newJobs, settleBatch } from "../../support/churn.ts";
import { type Call, measure, measureOften, median } from "../../support/explain.ts";
import { threadCpuMs } from "../../support/process-cpu.ts";
import { connect, pidOf } from "./connections.ts";

const times = 21;
const claimText = "select sluice.claim('default', array['mail'], 1, 600)";

export interface ClaimCost extends Call {
  cpuMs: number;
}

/** `jobOf` gives the job for each claim, as enqueue_jobs takes it. */
export async function claimCost(
  url: string,
  jobOf: (n: number) => string = () => newJobs(1),
): Promise<ClaimCost> {
  const client = await connect(url);
  const pid = await pidOf(client);
  const cpu: number[] = [];
  const call = await measureOften(times, async () => {
    await client.query("select from sluice.enqueue_jobs($1)", [jobOf(cpu.length)]);
    const before = threadCpuMs(pid);
    const measured = await measure(client, claimText);
    cpu.push(threadCpuMs(pid) - before);
    await settleBatch(client, await heldJobs(client));
    return measured;
  });
  await client.end();
  return { ...call, cpuMs: median(cpu.slice(-times)) };
}
