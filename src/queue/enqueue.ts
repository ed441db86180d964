// enqueue: stores checked jobs as pending, all or none, in one round trip.
import type { NewJob } from "../core/job.ts";
import type { EnqueuedJob } from "../core/sql/enqueue.ts";
import { enqueue as enqueueStatement } from "../core/sql/index.ts";
import type { Ports } from "./ports.ts";

/** One answer for each job, in the order of the jobs. */
export type Enqueued<Jobs extends readonly NewJob[]> = { [Index in keyof Jobs]: EnqueuedJob };

export async function enqueueAll<const Jobs extends readonly NewJob[]>(
  ports: Ports,
  jobs: Jobs,
): Promise<Enqueued<Jobs>> {
  // The statement's decoder has checked that no job is missing.
  return (await ports.db.run(enqueueStatement(jobs))) as Enqueued<Jobs>;
}

export async function enqueue(ports: Ports, job: NewJob): Promise<EnqueuedJob> {
  const [enqueued] = await enqueueAll(ports, [job]);
  return enqueued;
}
