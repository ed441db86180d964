// Compares each job and the books with the model. One statement reads everything, so it is one snapshot.
import { deepStrictEqual } from "node:assert/strict";
import type { TestDatabase } from "../support/test-database.ts";
import type { QueueModel } from "./queue-model.ts";

const counted = ["pending", "processing", "completed", "dead", "discarded", "cancelled"] as const;

// Prepared, because planning it takes longer than running it.
const everything = `
  select (select coalesce(json_agg(json_build_array(id, type, status, attempts, dead_reason) order by id), '[]')
          from sluice.jobs) as jobs,
         (select coalesce(json_object_agg(type, json_build_array(
            enqueued, failed, pending, leased, completed, dead, discarded, cancelled)), '{}')
          from sluice.books where enqueued > 0) as books`;

export async function compare(model: QueueModel, db: TestDatabase): Promise<void> {
  const { rows } = await db.pool.query({ name: "compare", text: everything });
  deepStrictEqual(rows[0], { jobs: jobsOf(model), books: booksOf(model) });
}

function jobsOf(model: QueueModel) {
  return model
    .all(() => true)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ id, type, status, attempts, reason }) => [id, type, status, attempts, reason]);
}

function booksOf(model: QueueModel) {
  const byType = Map.groupBy(model.jobs.values(), (job) => job.type);
  return Object.fromEntries(
    [...byType].map(([type, jobs]) => {
      const failed = jobs.reduce((sum, job) => sum + job.failed, 0);
      const counts = counted.map((status) => jobs.filter((job) => job.status === status).length);
      return [type, [jobs.length, failed, ...counts]];
    }),
  );
}
