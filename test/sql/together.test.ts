// Two reads in one statement answer as they do one by one.
import { expect, test } from "vitest";
import * as statements from "../../src/core/sql/index.ts";
import { together } from "../../src/core/sql/statement.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();

test("two reads in one statement answer as they do one by one", async () => {
  const schedule = {
    name: "nightly",
    cron: "0 2 * * *",
    timeZone: "UTC",
    type: "a",
    payload: { n: 1 },
    queue: "default",
  };
  const rules = { priority: null, maxAttempts: 5, missed: "last", overlap: "allow", paused: false } as const;
  await db.run(statements.putSchedule("me", { ...schedule, ...rules }));
  const until = new Date("2030-01-01T00:00:00.123Z");
  await db.run(statements.silenceAlarm("me", { alarm: "dead_letters", until }));
  const alarms = statements.readAlarms();
  const schedules = statements.listSchedules({ limit: 10 });
  const [first, second] = await db.run(together(alarms, schedules));
  expect(second).toHaveLength(1);
  expect(first.silences).toMatchObject([{ alarm: "dead_letters", until }]);
  expect([first, second]).toEqual([await db.run(alarms), await db.run(schedules)]);
});

test("reads without rows answer with none", async () => {
  const flows = statements.listFlows({ limit: 10 });
  const keys = statements.listPauses();
  expect(await db.run(together(flows, keys))).toEqual([[], []]);
});
