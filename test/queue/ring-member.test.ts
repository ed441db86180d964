// A drain's place on the ring: when it joins, which buckets it takes from, and that it leaves.
import { beforeEach, expect, test } from "vitest";
import { bucketsOf } from "../../src/core/policy/hash-ring.ts";
import { liveWorkers } from "../../src/core/sql/index.ts";
import { createRingMember, learnWorkers, leaveRing, ringFields } from "../../src/queue/drain/ring-member.ts";
import { createCountingDatabase } from "../support/counting-database.ts";
import { createTestPorts } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const counting = createCountingDatabase(db);
const ports = createTestPorts(counting, []);
const { query } = verbsOf(db);
beforeEach(async () => {
  await emptyQueue(db.pool);
  counting.takeCounts();
  ports.events.length = 0;
});

test("a drain takes from its own buckets, and from all while it is alone or not registered", () => {
  const member = createRingMember("d1");
  expect(ringFields(member)).toEqual({ worker: "d1", registers: true });
  for (const [workers, buckets] of [
    [["d1"], undefined],
    [["d1", "d2"], bucketsOf("d1", ["d1", "d2"])],
    [["d1", "d2", "w1"], bucketsOf("d1", ["d1", "d2", "w1"])],
    [["d2", "w1"], undefined],
    [["d1"], undefined],
  ] as const) {
    learnWorkers(member, [...workers]);
    expect(ringFields(member).buckets).toEqual(buckets);
  }
});

test("a drain without an id joins no ring", async () => {
  const member = createRingMember(undefined);
  learnWorkers(member, ["d1", "d2"]);
  expect(ringFields(member)).toEqual({});
  await leaveRing(ports, member, { queue: "orders" });
  expect(counting.takeCounts()).toEqual({});
});

test("a drain leaves once with one statement, and with none if it was not registered", async () => {
  const member = createRingMember("d1");
  learnWorkers(member, null);
  await leaveRing(ports, member, { queue: "orders" });
  expect(counting.takeCounts()).toEqual({});

  await query("select sluice.register_worker('d1', '{orders}', 'drain')");
  learnWorkers(member, ["d1"]);
  for (let n = 0; n < 2; n++) await leaveRing(ports, member, { queue: "orders" });
  expect(counting.takeCounts()).toEqual({ "remove worker": 1 });
  expect(await db.run(liveWorkers())).toEqual([]);
});

test("a drain that cannot leave says so, and goes on", async () => {
  const member = createRingMember("d1");
  learnWorkers(member, ["d1"]);
  counting.failNext("remove worker", 1);
  await leaveRing(ports, member, { queue: "orders" });
  expect(ports.events).toMatchObject([{ level: "warn", event: "worker not removed" }]);
});
