// enqueue: checked requests become pending jobs, all or none, in one round trip.
import { SluiceError } from "../core/errors.ts";
import type { NewJob } from "../core/job.ts";
import type { EnqueuedJob } from "../core/sql/enqueue.ts";
import { enqueue as enqueueStatement } from "../core/sql/index.ts";
import type { Ports } from "./ports.ts";

export async function enqueueAll(ports: Ports, jobs: readonly NewJob[]): Promise<EnqueuedJob[]> {
  return ports.db.run(enqueueStatement(jobs));
}

export async function enqueue(ports: Ports, job: NewJob): Promise<EnqueuedJob> {
  const [enqueued] = await enqueueAll(ports, [job]);
  if (!enqueued) throw new SluiceError("internal", "the enqueue returned no job");
  return enqueued;
}
