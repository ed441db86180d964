// Which buckets a puller's claim takes from, and how often the Worker reads the list of live workers for that.
import { beforeEach, expect, test } from "vitest";
import { bucketCount, bucketsOf } from "../../src/core/policy/hash-ring.ts";
import { registerPuller } from "../../src/core/sql/index.ts";
import { findPlace, forgetWorker, rememberWorkers } from "../../src/edge/http/live-workers.ts";
import { isolateStateFor } from "../../src/edge/isolate-state.ts";
import { createCountingDatabase } from "../support/counting-database.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { createTestPorts } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times } from "../support/verbs.ts";

const db = useTestDatabase();
const counting = createCountingDatabase(db);
const clock = createManualClock();
const ports = { ...createTestPorts(counting, []), clock };
let isolates = 0;
/** As many as a test needs: each has a memory of its own. */
const newIsolate = () => ({
  ports,
  isolate: isolateStateFor({
    databaseUrl: `${db.url}_${isolates++}`,
    hyperdriveUrl: undefined,
    schema: "sluice",
  }),
});

let isolate = newIsolate();
const find = (worker: string, queue = "orders") =>
  findPlace(isolate, { queue, worker }).then((place) => place?.buckets ?? null);
const register = (id: string, queue = "orders") => db.run(registerPuller(id, [queue]));
beforeEach(async () => {
  await emptyQueue(db.pool);
  isolate = newIsolate();
  counting.takeCounts();
});

test("a worker that never registered takes from all buckets", async () => {
  for (const id of ["w1", "w2"]) await register(id);
  expect(await find("stranger")).toBeNull();
});

test("the only worker of a queue takes from all buckets, and each of several takes from its own", async () => {
  await register("w1");
  await register("w2", "mail");
  expect(await find("w1")).toBeNull();
  await register("w2");
  isolate = newIsolate();
  const [first, second] = [await find("w1"), await find("w2")];
  expect(first).toEqual(bucketsOf("w1", ["w1", "w2"]));
  expect(new Set([...(first ?? []), ...(second ?? [])]).size).toBe(bucketCount);
  expect(await find("w1", "mail")).toBeNull();
});

test("an isolate reads the workers of a queue once in five seconds, however many claims there are", async () => {
  for (const id of ["w1", "w2"]) await register(id);
  for (let n = 0; n < 10; n++) await find(`w${n}`);
  expect(counting.takeCounts()).toEqual({ "live workers": 1 });
  clock.advance(4_999);
  await find("w1");
  expect(counting.takeCounts()).toEqual({});
  clock.advance(1);
  await Promise.all(times(10, () => find("w1")));
  expect(counting.takeCounts()).toEqual({ "live workers": 1 });
  await find("w1", "mail");
  expect(counting.takeCounts()).toEqual({ "live workers": 1 });
});

test("a heartbeat or a leave at this isolate takes effect at once, without a read", async () => {
  await register("w1");
  await find("w1");
  rememberWorkers(isolate, "orders", ["w1", "w2"]);
  expect(await find("w2")).toEqual(bucketsOf("w2", ["w1", "w2"]));
  rememberWorkers(isolate, "orders", ["w1", "w2", "w3"]);
  expect(await find("w2")).toEqual(bucketsOf("w2", ["w1", "w2", "w3"]));
  forgetWorker(isolate, "w1");
  expect(await find("w2")).toEqual(bucketsOf("w2", ["w2", "w3"]));
  forgetWorker(isolate, "w3");
  expect(await find("w2")).toBeNull();
  expect(counting.takeCounts()).toEqual({ "live workers": 1 });
});

test("an isolate remembers the workers of at most 1,000 queues", async () => {
  for (let n = 0; n < 1_500; n++) rememberWorkers(isolate, `q${n}`, ["w1", "w2"]);
  expect(isolate.isolate.liveWorkers.size).toBe(1_000);
  expect(await find("w1", "q1499")).not.toBeNull();
  expect(counting.takeCounts()).toEqual({});
});
