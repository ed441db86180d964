// discard: a dead job is given up for good, and the audit says why.
import { beforeEach, expect, test } from "vitest";
import { discard, replay } from "../../src/core/sql/index.ts";
import { newestAudit } from "../support/audit.ts";
import { oneOfEach } from "../support/one-of-each.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

test("a discarded job stays discarded, and the audit has the reason", async () => {
  const id = await queue.buryOne();
  const changed = await db.run(discard("ann", { id, reason: "a test order" }));
  expect(changed).toMatchObject({ applied: true, job: { status: "discarded", deadReason: "fatal" } });
  expect(changed?.job).toEqual(await queue.find(id));
  expect(await newestAudit(db)).toMatchObject({
    actor: "ann",
    action: "discard",
    target: `job ${id}`,
    before: { status: "dead", dead_reason: "fatal", attempts: 1 },
    after: { status: "discarded", reason: "a test order" },
  });
  expect(await queue.isApplied(replay("ann", { id }))).toBe(false);
  expect(await queue.isApplied(discard("ann", { id }))).toBe(false);
});

test("only dead jobs can be discarded, and a refused discard is not audited", async () => {
  const { dead, unknown, ...others } = await oneOfEach(db, queue);
  const audited = await queue.count("audit");
  for (const [state, id] of Object.entries(others)) {
    const changed = await db.run(discard("ann", { id }));
    expect([state, changed?.applied, changed?.job]).toEqual([state, false, await queue.find(id)]);
  }
  expect(await db.run(discard("ann", { id: unknown }))).toBe(null);
  expect(await queue.count("audit")).toBe(audited);
  expect(await queue.isApplied(discard("ann", { id: dead }))).toBe(true);
});

test("when a replay and a discard run concurrently, exactly one gets the job", async () => {
  for (let round = 0; round < 20; round++) {
    const id = await queue.buryOne({ type: `round-${round}` });
    const [replayed, discarded] = await Promise.all([
      queue.isApplied(replay("ann", { id })),
      queue.isApplied(discard("bob", { id })),
    ]);
    expect(replayed).toBe(!discarded);
    expect(await queue.find(id)).toMatchObject({ status: replayed ? "pending" : "discarded" });
  }
});
