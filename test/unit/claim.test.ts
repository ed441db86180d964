// How the answer of a claim is read. sql/claim.test.ts tests the claim itself.
import { describe, expect, test } from "vitest";
import { claim } from "../../src/core/sql/index.ts";
import { compile } from "../../src/core/sql/statement.ts";

const request = { queue: "orders", types: ["ship"], limit: 10, leaseSeconds: 60 };
const idOf = (n: number) => `019a0000-0000-7000-8000-00000000000${n}`;

/** As migrations/functions/claim.sql answers: ids, seqs and keys are parallel, and a lease is sorted by id. */
function lease(fields: object, jobs: { n: number; seq: number; fairKey?: string }[]) {
  return {
    type: "ship",
    priority: 5,
    expires_ms: 0,
    attempts: null,
    abandonments: null,
    kind: "plain",
    keys: null,
    seqs: jobs.map(({ seq }) => seq),
    jobs: jobs.map(({ n, fairKey }) => [idOf(n), {}, 5, null, null, null, null, fairKey ?? null]),
    ...fields,
  };
}

function decode(answer: object) {
  const whole = { settled: null, key: idOf(9), is_probe: false, is_trial: false, has_more: false, ...answer };
  return claim(request).decode([{ claimed: whole }]);
}

describe("a claimed job", () => {
  test("with a partition key has the key of its run, as text, because it does not fit into a number", () => {
    const keys = ["-9007199254740993", "9007199254740995", "-9007199254740993"];
    const leases = [
      lease({ kind: "ordered", keys }, [
        { n: 1, seq: 12 },
        { n: 2, seq: 11 },
        { n: 3, seq: 10 },
      ]),
    ];
    expect(decode({ leases }).jobs).toMatchObject([
      { id: idOf(3), runKey: "-9007199254740993", mayRelease: true, fairKey: null },
      { id: idOf(2), runKey: "9007199254740995" },
      { id: idOf(1), runKey: "-9007199254740993" },
    ]);
  });

  test("with a fair key belongs to no run, and holds a turn only if its key has a limit", () => {
    const leases = [
      lease({ kind: "fair", keys: ["7"] }, [{ n: 1, seq: 1, fairKey: "a" }]),
      lease({ kind: "fair", keys: null }, [{ n: 2, seq: 2, fairKey: "b" }]),
    ];
    expect(decode({ leases }).jobs).toMatchObject([
      { fairKey: "a", runKey: null, mayRelease: true },
      { fairKey: "b", runKey: null, mayRelease: false },
    ]);
  });

  test("without a key has none of these", () => {
    expect(decode({ leases: [lease({}, [{ n: 1, seq: 1 }])] }).jobs).toMatchObject([
      { fairKey: null, partitionKey: null, runKey: null, mayRelease: false },
    ]);
  });
});

test("an answer without workers has null, and one with workers has their ids", () => {
  expect(decode({ leases: null })).toEqual({
    jobs: [],
    hasMore: false,
    hasLinks: false,
    settled: [],
    workers: null,
  });
  expect(decode({ leases: null, workers: ["w1", "w2"] }).workers).toEqual(["w1", "w2"]);
});

test("a claim sends its run, its buckets, the rules of its queue and its types with steps, or their defaults", () => {
  const lastValues = (more: object) => compile(claim({ ...request, ...more })).values.slice(-6);
  expect(lastValues({})).toEqual([1, null, null, false, null, null]);
  const policy = { onDead: "pass", concurrency: 4, secondsApart: null, maxRun: 7 };
  const stepTypes = ["ship"];
  const more = { run: 20, buckets: [3], owners: [0, 1], policy, registers: true, stepTypes };
  const [run, buckets, sent, registers, types, owners] = lastValues(more);
  expect([run, buckets, registers, types, owners]).toEqual([20, [3], true, stepTypes, [0, 1]]);
  expect(JSON.parse(String(sent))).toEqual({ on_dead: "pass", concurrency: 4, seconds_apart: null });
});
