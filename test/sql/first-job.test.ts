// The first job of a new database, whose sequences have never been used.
import { expect, test } from "vitest";
import { advanceCursors } from "../../src/core/sql/index.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);

test("the first scheduled job is claimed when it is due, however often the cursors were advanced before", async () => {
  await db.run(advanceCursors());
  const [job] = await queue.enqueue({ delaySeconds: 600 });
  for (let round = 0; round < 3; round++) await db.run(advanceCursors());
  await queue.query("update sluice.scheduled set run_at = now()");
  expect((await queue.claim()).map(({ id }) => id)).toEqual([job?.id]);
});
