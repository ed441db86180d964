// The definitions of schedules: their options are checked when the Worker starts.
import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/jobs/define.ts";
import { defineSchedule } from "../../src/jobs/define-schedule.ts";
import { createRegistry } from "../../src/jobs/registry.ts";

const job = defineJob("report", {
  payload: z.object({ kind: z.string() }),
  queue: "reports",
  maxAttempts: 3,
  run: () => {},
});
const options = { cron: "0 2 * * *", job, payload: { kind: "daily" } };

test("a schedule has the defaults, and the queue and attempts of its job", () => {
  expect(defineSchedule("nightly", options)).toEqual({
    ...{ name: "nightly", cron: "0 2 * * *", timeZone: "UTC", type: "report", payload: { kind: "daily" } },
    ...{ queue: "reports", priority: null, maxAttempts: 3, missed: "last", overlap: "allow" },
  });
});

test.each([
  [{ cron: "0 25 * * *" }, "cron: "],
  [{ timeZone: "Nowhere" }, "timeZone: must be an IANA"],
  [{ missed: "some" }, "missed: "],
  [{ priority: 10 }, "priority: "],
  [{ payload: {} }, "payload.kind: "],
])("%j is an error that names the field", (fields, message) => {
  expect(() => defineSchedule("nightly", { ...options, ...fields } as never)).toThrow(
    `schedule "nightly": ${message}`,
  );
});

test("a payload of another shape does not compile", () => {
  // @ts-expect-error: kind is a text
  expect(() => defineSchedule("nightly", { ...options, payload: { kind: 1 } })).toThrow("payload.kind");
});

test("a name is used once, and the job must be in the deployment", () => {
  const nightly = defineSchedule("nightly", options);
  expect(() => createRegistry([job], [], [nightly, nightly])).toThrow('schedule "nightly" is defined twice');
  expect(() => createRegistry([], [], [nightly])).toThrow('its job "report" is not in sluice({ jobs })');
});
