// Settlements are sorted by id, because the engine settles a whole lease only if the ids come in the lease's order.
import { expect, test } from "vitest";
import type { Settlement } from "../../src/core/job.ts";
import { packSettlements } from "../../src/core/settlements.ts";

const settlement = (id: string, outcome: Settlement["outcome"] = { kind: "complete", output: null }) => ({
  job: { id, leaseKey: `1${id}` },
  outcome,
});

test("ids are sent sorted with their keys, and statuses come back in the order of the request", () => {
  const { ids, keys, read } = packSettlements(["c", "a", "b"].map((id) => settlement(id)));
  expect([ids, keys]).toEqual([
    ["a", "b", "c"],
    ["1a", "1b", "1c"],
  ]);
  expect(read(["completed", null, "dead"])).toEqual([
    { id: "c", status: "dead", applied: true },
    { id: "a", status: "completed", applied: true },
    { id: "b", status: null, applied: false },
  ]);
});

test("two settlements of one job keep their order", () => {
  const twice = [settlement("b"), settlement("a", { kind: "release" }), settlement("a")];
  expect(JSON.parse(packSettlements(twice).outcomes ?? "")).toEqual([
    { outcome: "release" },
    { outcome: "complete", output: null },
    { outcome: "complete", output: null },
  ]);
});

test("outcomes are sent only if one is not a completion without output", () => {
  expect(packSettlements([settlement("a"), settlement("b")]).outcomes).toBe(null);
  expect(packSettlements([settlement("a", { kind: "complete", output: 0 })]).outcomes).toBe(
    '[{"outcome":"complete","output":0}]',
  );
});
