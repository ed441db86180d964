// The server's cost of one claim of Sluice: time and buffers from EXPLAIN, as a median. It enqueues its own jobs and removes
// them.
import { heldJobs, newJobs, settleBatch } from "../../support/churn.ts";
import { type Call, measure, measureOften } from "../../support/explain.ts";
import { connect } from "./connections.ts";

const times = 21;
const claimText = "select sluice.claim('default', array['mail'], 1, 600)";

/** `jobOf` gives the job for each claim, as enqueue_jobs takes it. */
export async function claimCost(url: string, jobOf: (n: number) => string = () => newJobs(1)): Promise<Call> {
  const client = await connect(url);
  let claims = 0;
  const call = await measureOften(times, async () => {
    await client.query("select from sluice.enqueue_jobs($1)", [jobOf(claims++)]);
    const measured = await measure(client, claimText);
    await settleBatch(client, await heldJobs(client));
    return measured;
  });
  await client.end();
  return call;
}
