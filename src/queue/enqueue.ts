// enqueue: a checked request becomes a pending job, in one round trip.
import { SluiceError } from "../core/errors.ts";
import type { NewJob } from "../core/job.ts";
import type { EnqueuedJob } from "../core/sql/enqueue.ts";
import { enqueue as enqueueStatement } from "../core/sql/index.ts";
import type { Queue } from "./ports.ts";

export async function enqueue(queue: Queue, job: NewJob): Promise<EnqueuedJob> {
  const [enqueued] = await queue.db.run(enqueueStatement([job]));
  if (!enqueued) throw new SluiceError("internal", "the enqueue returned no job");
  return enqueued;
}
