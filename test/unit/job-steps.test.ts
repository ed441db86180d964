// From the stored rows of durable steps to steps with a beginning and an end.
import { expect, test } from "vitest";
import { type StepRow, toJobSteps } from "../../src/core/job-steps.ts";

const at = (ms: number) => new Date(ms);
const row = (
  name: string,
  stored_at: number | null,
  took_ms: number | null,
  value: StepRow["value"] = null,
): StepRow => ({
  ...{ name, stored_at, took_ms, value },
});

test("a step ended when it was stored, and began as long before as it took", () => {
  expect(toJobSteps([row("charge", 5_000, 1_200, { id: 1 })])).toEqual([
    { name: "charge", kind: "run", startedAt: at(3_800), endedAt: at(5_000), value: { id: 1 } },
  ]);
});

test("a sleep begins when it is stored, and ends at its value", () => {
  expect(toJobSteps([row("sleep:night", 5_000, -8_000, 13_000)])).toEqual([
    { name: "sleep:night", kind: "sleep", startedAt: at(5_000), endedAt: at(13_000), value: 13_000 },
  ]);
  const { value: _, ...large } = row("nap", 5_000, -8_000);
  expect(toJobSteps([large])).toEqual([
    { name: "nap", kind: "sleep", startedAt: at(5_000), endedAt: at(13_000) },
  ]);
});

test("a wait and its time-out are one step, which has no end while it waits", () => {
  const until = row("wait:paid:order 7:until", 5_000, -60_000, 65_000);
  expect(toJobSteps([until])).toEqual([
    { name: "wait:paid:order 7", kind: "wait", startedAt: at(5_000), endedAt: null },
  ]);
  expect(toJobSteps([until, row("wait:paid:order 7", 9_000, null, { payload: 1 })])).toEqual([
    {
      name: "wait:paid:order 7",
      kind: "wait",
      startedAt: at(5_000),
      endedAt: at(9_000),
      value: { payload: 1 },
    },
  ]);
});

test("the beginning of a wait without a time-out is not known", () => {
  expect(toJobSteps([row("wait:paid:7", 9_000, null)])).toEqual([
    { name: "wait:paid:7", kind: "wait", startedAt: null, endedAt: at(9_000), value: null },
  ]);
});

test("a signal's key may end like the name of a time-out", () => {
  const steps = toJobSteps([
    row("wait:paid:x:until", 9_000, null),
    row("wait:paid:x:until:until", 5_000, -60_000, 65_000),
  ]);
  expect(steps).toEqual([
    { name: "wait:paid:x:until", kind: "wait", startedAt: at(5_000), endedAt: at(9_000), value: null },
  ]);
});

test("children and their ends are one step, from the enqueue on", () => {
  const jobs = row("all:render:jobs", 5_000, 100, ["a"]);
  expect(toJobSteps([jobs])).toEqual([
    { name: "all:render", kind: "all", startedAt: at(4_900), endedAt: null },
  ]);
  expect(toJobSteps([jobs, row("all:render", 9_000, null, [])])).toEqual([
    { name: "all:render", kind: "all", startedAt: at(4_900), endedAt: at(9_000), value: [] },
  ]);
});

test("a function whose name begins like a wait is still a function", () => {
  const kinds = toJobSteps([row("wait:x", 1, 0), row("all:y", 2, 1), row("sleep:z", 3, 1)]).map(
    ({ kind }) => kind,
  );
  expect(kinds).toEqual(["run", "run", "run"]);
});

test("rows of an older release have no times, and come first", () => {
  const old = [row("sleep:a", null, null, 1), row("wait:b:c", null, null), row("d", null, null, 2)];
  expect(toJobSteps([row("e", 1_000, 10), ...old])).toMatchObject([
    { name: "sleep:a", kind: "sleep", startedAt: null, endedAt: null, value: 1 },
    { name: "wait:b:c", kind: "wait", startedAt: null, endedAt: null },
    { name: "d", kind: "run", startedAt: null, endedAt: null, value: 2 },
    { name: "e" },
  ]);
});

test("steps are in the order in which they began", () => {
  const rows = [row("short", 1_000, 10), row("long", 2_000, 1_900)];
  expect(toJobSteps(rows).map(({ name }) => name)).toEqual(["long", "short"]);
});
