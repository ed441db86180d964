// The overview: one statement for what the first page shows beside the snapshot.
import { beforeEach, expect, test } from "vitest";
import {
  changeAlarms,
  foldLedger,
  listRounds,
  overview,
  pause,
  putSchedule,
  readHistory,
  recordRound,
  silenceAlarm,
} from "../../src/core/sql/index.ts";
import { firing } from "../support/alarms.ts";
import { newSchedule } from "../support/schedules.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const look = () => db.run(overview({ range: "3h", queues: 10 }));

test("of an empty queue has nothing", async () => {
  expect(await look()).toMatchObject({
    ...{ firing: [], pauses: [], nextSlots: [], waiting: null, processing: null },
    history: { range: "3h", queues: [] },
  });
});

test("has the history, the percentiles of all types, alarms that fire, and pauses", async () => {
  await queue.enqueue({ type: "a" }, { type: "b" });
  await queue.settle(await queue.claim({ types: ["a", "b"] }), complete);
  await db.run(foldLedger({ limit: 1000 }));
  await db.run(changeAlarms([{ state: firing, version: undefined, notice: null }], []));
  const until = new Date(Date.now() + 60_000);
  await db.run(silenceAlarm("ann", { alarm: firing.alarm, until }));
  await db.run(pause("ann", { queue: "default" }));
  const found = await look();
  expect(found).toMatchObject({
    firing: [{ alarm: firing.alarm, queue: firing.queue, summary: firing.summary, silencedUntil: until }],
    pauses: [{ kind: "queue", name: "default", since: expect.any(Date) }],
    waiting: { jobs: 2 },
    processing: { jobs: 2 },
  });
  expect(found.history.queues).toEqual((await db.run(readHistory({ range: "3h", queues: 10 }))).queues);
  expect(found.history.marks.map(({ kind }) => kind)).toEqual(["firing", "pause"]);
});

test("has the five nearest slots, and none of a paused schedule", async () => {
  for (let n = 1; n <= 7; n++)
    await db.run(putSchedule("ann", { ...newSchedule, name: `s${n}`, cron: "0 0 1 1 *", paused: n === 1 }));
  await queue.query(
    `insert into sluice.scheduled (run_at, id, lane, place)
     select at, sluice.slot_id(number, at), lane, -1
     from sluice.schedule, lateral (select now() + (100 - number % 50) * interval '1 minute' as at) as slot`,
  );
  const { nextSlots } = await look();
  expect(nextSlots).toHaveLength(5);
  expect(nextSlots.map(({ name }) => name)).not.toContain("s1");
  expect(nextSlots.map(({ slot }) => slot)).toEqual(
    nextSlots.map(({ slot }) => slot).toSorted((a, b) => a.getTime() - b.getTime()),
  );
});

test("rounds are listed newest first, in pages, of one kind or of all", async () => {
  for (const kind of ["drain", "reap", "watch", "drain"] as const)
    await db.run(recordRound({ kind, ms: 5, report: { claimed: 1, end: "empty" } }));
  const [first, ...rest] = await db.run(listRounds({ limit: 2 }));
  expect([first, ...rest].map((round) => round?.kind)).toEqual(["drain", "watch"]);
  expect(first).toMatchObject({ claimed: 1, reason: "empty", steps: null, queue: null });
  const older = await db.run(listRounds({ before: rest[0]?.id, limit: 10 }));
  expect(older.map(({ kind }) => kind)).toEqual(["reap", "drain"]);
  expect(await db.run(listRounds({ kind: "drain", limit: 10 }))).toHaveLength(2);
});
