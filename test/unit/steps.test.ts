// The types of durable steps, and what a handler gets when the attempt has ended.
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { Suspension } from "../../src/core/errors.ts";
import type { Json, NewStep, StepValues } from "../../src/core/job.ts";
import { systemClock } from "../../src/edge/system-clock.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { defineSignal } from "../../src/jobs/define-signal.ts";
import { createStep } from "../../src/queue/steps/create-step.ts";
import type { ChildOutcome, Step } from "../../src/queue/steps/step.ts";
import type { StepHost } from "../../src/queue/steps/step-calls.ts";

const render = defineJob("render", {
  payload: z.object({ page: z.number() }),
  run: ({ page }) => ({ rows: page, title: "x" as string }),
});
const packed = defineSignal("packed", z.object({ tracking: z.string() }));

describe("types", () => {
  test("of a step's value, a signal's payload and the children's outputs", () => {
    const check = async (step: Step) => {
      expectTypeOf(await step.run("a", () => ({ id: 1 }))).toEqualTypeOf<{ id: number }>();
      expectTypeOf(await step.run("b", async () => "text")).toEqualTypeOf<string>();
      expectTypeOf(await step.run("c", () => ({ at: new Date() }))).toEqualTypeOf<{ at: string }>();
      expectTypeOf(await step.run("d", () => {})).toEqualTypeOf<null>();
      expectTypeOf(await step.run("e", () => [1, 2])).toEqualTypeOf<number[]>();
      expectTypeOf(await step.waitFor(packed, "k")).toEqualTypeOf<{ tracking: string } | null>();
      const parts = await step.all("render", render, [{ page: 1 }]);
      expectTypeOf(parts).toEqualTypeOf<ChildOutcome<typeof render>[]>();
      const [part] = parts;
      if (part?.status === "completed")
        expectTypeOf(part.output).toEqualTypeOf<{ rows: number; title: string }>();
      // @ts-expect-error: a wrong payload does not compile
      await step.all("render", render, [{ page: "one" }]);
      // @ts-expect-error: a payload that lacks a field does not compile
      await step.all("render", render, [{}]);
      // @ts-expect-error: the schema must fit the value
      await step.run("f", () => 1, { schema: z.string() });
      // @ts-expect-error: a signal has a schema
      await step.waitFor("packed", "k");
    };
    expect(check).toBeTypeOf("function");
  });

  test.each(["", "Upper", "a b"])("the signal name %j is refused", (name) => {
    expect(() => defineSignal(name, z.json())).toThrow(TypeError);
  });
});

function createHost(stored: StepValues = {}) {
  const written: NewStep[] = [];
  const abortion = new AbortController();
  const ended = Promise.withResolvers<Error>();
  const host: StepHost = {
    jobId: "019a0000-0000-7000-8000-000000000000",
    traceparent: null,
    clock: systemClock,
    signal: abortion.signal,
    timeoutSeconds: 10,
    read: async () => ({ steps: stored, nowMs: Date.now() }),
    write: async (step) => {
      written.push(step);
      return "value" in step ? step.value : Date.now() + step.seconds * 1000;
    },
    hasRoom: () => true,
    restart() {},
    end(reason) {
      abortion.abort(reason);
      ended.resolve(reason);
    },
    findSignal: async () => null,
    enqueue: async (jobs) => jobs.map((_, n) => `child ${n}`),
    findOutcomes: async (ids) => ids.map((id) => ({ id, status: "pending", output: null as Json })),
  };
  return { host, written, ended: ended.promise };
}

async function outcomeOf(host: { ended: Promise<Error> }) {
  const reason = await host.ended;
  return reason instanceof Suspension ? reason.outcome : reason;
}

describe("a handler that waits", () => {
  test("for a signal is suspended until it comes, or its time is over", async () => {
    const host = createHost();
    void createStep(host.host).waitFor(packed, "k", { timeoutSeconds: 60 });
    expect(await outcomeOf(host)).toEqual({
      kind: "suspend",
      wait: { signal: { name: "packed", key: "k" }, seconds: expect.closeTo(60, 0) },
    });
  });

  test("for children is suspended until they have ended", async () => {
    const host = createHost();
    void createStep(host.host).all("render", render, [{ page: 1 }, { page: 2 }]);
    expect(await outcomeOf(host)).toEqual({
      kind: "suspend",
      wait: { jobs: ["child 0", "child 1"], seconds: undefined },
    });
    expect(host.written).toEqual([
      { name: "all:render:jobs", value: ["child 0", "child 1"], took_ms: expect.any(Number) },
    ]);
  });

  test("for a signal beside a sleep wakes up when the sleep is over", async () => {
    const host = createHost();
    const step = createStep(host.host);
    void step.waitFor(packed, "k");
    void step.sleep("rest", 30);
    expect(await outcomeOf(host)).toMatchObject({
      kind: "suspend",
      wait: { signal: { key: "k" }, seconds: expect.closeTo(30, 0) },
    });
  });

  test("starts nothing more after the end", async () => {
    const host = createHost();
    const step = createStep(host.host);
    void step.sleep("rest", 30);
    await host.ended;
    let ran = false;
    void step.run("late", () => {
      ran = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(ran).toBe(false);
  });
});

test("the same names in the same order have the same numbers, whatever is stored", async () => {
  const { host, written } = createHost({ page: 1, "page#3": 3 });
  const step = createStep(host);
  const values = await Promise.all([1, 2, 3].map((n) => step.run("page", () => n * 10)));
  expect(values).toEqual([1, 20, 3]);
  expect(written).toEqual([{ name: "page#2", value: 20, took_ms: expect.any(Number) }]);
});

test.each([-1, Number.NaN, 1e9])("a sleep of %d seconds is a fatal error", async (seconds) => {
  await expect(createStep(createHost().host).sleep("rest", seconds)).rejects.toThrow(/must be 0 to/);
});
