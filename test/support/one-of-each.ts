// Makes a job in each state, and an id that no job has.
import type { NewJob } from "../../src/core/job.ts";
import { cancel, discard } from "../../src/core/sql/index.ts";
import type { TestDatabase } from "./test-database.ts";
import { complete, type Verbs } from "./verbs.ts";

export async function oneOfEach(db: TestDatabase, queue: Verbs, fields: Partial<NewJob> = {}) {
  const processing = await queue.enqueueOne(fields);
  await queue.claimOne();
  const completed = await queue.enqueueOne(fields);
  await queue.settle([await queue.claimOne()], complete);
  const dead = await queue.buryOne(fields);
  const discarded = await queue.buryOne(fields);
  await db.run(discard("ann", { id: discarded }));
  const cancelled = await queue.enqueueOne(fields);
  await db.run(cancel(cancelled));
  const ready = await queue.enqueueOne(fields);
  const scheduled = await queue.enqueueOne({ ...fields, delaySeconds: 60 });
  const unknown = "01900000-0000-7000-8000-000000000000";
  return { processing, completed, dead, discarded, cancelled, ready, scheduled, unknown };
}
