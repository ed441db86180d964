// The calls of one worker overtake each other: a settlement is sent again while the first one is still under way, and
// between the two an extend splits the lease.
import { beforeEach, expect, test } from "vitest";
import { extend, settle } from "../../src/core/sql/index.ts";
import { runOn } from "../model/gate/gate-sql.ts";
import { inSession, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);

beforeEach(() => emptyQueue(db.pool));

test("a settlement sent twice around the split of its lease is applied once", async () => {
  await verbs.enqueue({}, {}, {});
  const first = await verbs.claimOne();
  const [job, other] = await verbs.claim({ limit: 2 });
  if (!job || !other) throw new Error("two jobs expected");

  await inSession(db.pool, async (blocker) => {
    await inSession(db.pool, async (again) => {
      await blocker.query("begin");
      await blocker.query("select from sluice.lease where key = $1 for update", [first.leaseKey]);
      // Waits for the lease of `first`. Its snapshot is older than the split.
      const early = verbs.settle([first, job], complete);
      await untilWaiting(db.pool);
      await db.run(extend([job], { seconds: 600 }));
      await verbs.settle([other], complete); // removes the part of the lease that the waiting settlement knows
      await again.query("begin");
      const late = await runOn(again, settle([{ job, outcome: { kind: "bury", message: "no use" } }]));
      await blocker.query("commit");
      await untilWaiting(db.pool);
      await again.query("commit");

      expect(late).toMatchObject([{ applied: true, status: "dead" }]);
      expect(await early).toMatchObject([{ applied: true }, { applied: false }]);
    });
  });

  expect(await verbs.find(job.id)).toMatchObject({ status: "dead" });
  const totals = await verbs.query(
    "select enqueued, completed, dead, leased from sluice.books where type = 'echo'",
  );
  expect(totals).toEqual([{ enqueued: "3", completed: "2", dead: "1", leased: "0" }]);
});
