// The definitions of job types: their options are checked, and their handlers' results become outcomes.
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { FatalError, RetryableError, Snooze } from "../../src/core/errors.ts";
import { defineJob, definePulledJob } from "../../src/jobs/define.ts";
import { defineBatchJob } from "../../src/jobs/define-batch.ts";
import { defineReconciledJob, type Observation } from "../../src/jobs/define-reconciled.ts";
import { createRegistry } from "../../src/jobs/registry.ts";
import { runBatch, runSingle } from "../support/run-type.ts";

const greet = defineJob("greet", {
  payload: z.object({ name: z.string() }),
  run: ({ name }) => `hello ${name}`,
});
const failed = (attempt: number) => ({ attempt, at: "2026-01-01T00:00:00Z", message: "" });
const options = { payload: z.object({}), run: () => {} };

describe("defineJob", () => {
  test("a handler gets the payload with the type of its schema", () => {
    defineJob("typed", {
      payload: z.object({ at: z.string(), times: z.number().default(1), note: z.string().optional() }),
      run: (payload) => {
        expectTypeOf(payload.times).toEqualTypeOf<number>();
        expectTypeOf(payload.note).toEqualTypeOf<string | undefined>();
      },
    });
  });

  test("a stored payload that no longer fits is a fatal error that names the field", async () => {
    await expect(runSingle(greet, { name: 7 })).rejects.toThrow(FatalError);
    await expect(runSingle(greet, { name: 7 })).rejects.toThrow(/name: .*string/);
  });

  test("a handler that returns nothing completes with a null output", async () => {
    expect(await runSingle(defineJob("quiet", options), {})).toBeNull();
  });

  test("an older payload is upgraded step by step to the current schema", async () => {
    const moved = defineJob("moved", {
      payload: z.object({ address: z.object({ city: z.string() }) }),
      older: [
        {
          payload: z.strictObject({ city: z.string() }),
          upgrade: ({ city }: { city: string }) => ({ address: { city } }),
        },
        {
          payload: z.strictObject({ town: z.string() }),
          upgrade: ({ town }: { town: string }) => ({ city: town }),
        },
      ],
      run: ({ address }) => address.city,
    });
    for (const payload of [{ address: { city: "Ulm" } }, { city: "Ulm" }, { town: "Ulm" }]) {
      expect(moved.faultsOf(payload)).toEqual([]);
      expect(await runSingle(moved, payload)).toBe("Ulm");
    }
    expect(moved.faultsOf({ village: "Ulm" })).toMatchObject([{ path: "address" }]);
  });

  test.each(["", "Upper", "1st", "a b", "x".repeat(64)])("the type name %j is refused", (type) => {
    expect(() => defineJob(type, options)).toThrow(/job type/);
  });

  test.each([
    [{ leaseSeconds: 59 }, "leaseSeconds"],
    [{ leaseSeconds: 3601 }, "leaseSeconds"],
    [{ maxAttempts: 21 }, "maxAttempts"],
    [{ timeoutSeconds: 0 }, "timeoutSeconds"],
    [{ concurrency: 0 }, "concurrency"],
    [{ rate: { limit: 0, per: "minute" as const } }, "rate.limit"],
    [{ queue: "No" }, "queue"],
    [{ backoff: { baseSeconds: -1 } }, "backoff.baseSeconds"],
  ])("the invalid option %o is refused, and the error names it", (bad, name) => {
    expect(() => defineJob("bad", { ...options, ...bad })).toThrow(`job type "bad": ${name}: `);
  });

  test("a rate can be per second, minute, hour or any number of seconds", () => {
    const rates = (["second", "minute", "hour", 90] as const).map(
      (per) => defineJob("r", { ...options, rate: { limit: 2, per } }).limits.rate,
    );
    expect(rates).toEqual([1, 60, 3600, 90].map((perSeconds) => ({ limit: 2, perSeconds })));
  });

  test("two types with one name are refused", () => {
    expect(() => createRegistry([greet, greet])).toThrow('job type "greet" is defined twice');
  });

  test("a pulled type has no handler", () => {
    expect(definePulledJob("pulled", { payload: z.object({}) }).work).toEqual({ kind: "pulled" });
  });
});

describe("defineBatchJob", () => {
  const sum = defineBatchJob("sum", {
    payload: z.object({ n: z.number() }),
    run: async (jobs) =>
      jobs.map(({ payload: { n } }) => {
        if (n === 1) return { error: new RetryableError("one", { retryInSeconds: 3 }) };
        if (n === 2) return { error: new FatalError("two") };
        if (n === 3) return { error: new Snooze(9) };
        if (n === 4) return { error: new Error("four") };
        return { output: n * 10 };
      }),
  });

  test("gives each job its own outcome, and buries invalid payloads without calling the handler", async () => {
    const payloads = [{ n: 5 }, { n: 1 }, { n: "x" }, { n: 2 }, { n: 3 }, { n: 4 }, { n: 6 }];
    expect(await runBatch(sum, payloads)).toMatchObject([
      { kind: "complete", output: 50 },
      { kind: "retry", message: "one", retryInSeconds: 3 },
      { kind: "bury" },
      { kind: "bury", message: "two" },
      { kind: "snooze", retryInSeconds: 9 },
      { kind: "retry", message: "four", retryInSeconds: undefined },
      { kind: "complete", output: 60 },
    ]);
  });

  test("a handler that does not answer for every job fails them all", async () => {
    const lazy = defineBatchJob("lazy", { payload: z.object({}), run: async () => [] });
    await expect(runBatch(lazy, [{}])).rejects.toThrow("answered for 0 of 1 jobs");
  });
});

describe("defineReconciledJob", () => {
  const ran: string[] = [];
  const index = defineReconciledJob("index", {
    payload: z.object({ seen: z.enum(["there", "missing", "gone"]) }),
    observeAfterSeconds: 30,
    observe: async (jobs) => jobs.map(({ payload }): Observation => payload.seen),
    run: ({ seen }) => void ran.push(seen),
  });

  test("completes jobs whose effect is there or whose source is gone, and runs the others", async () => {
    expect(await runBatch(index, [{ seen: "there" }, { seen: "missing" }, { seen: "gone" }])).toMatchObject([
      { kind: "complete" },
      { kind: "snooze", retryInSeconds: 30, uses: 1 },
      { kind: "complete" },
    ]);
    expect(ran).toEqual(["missing"]);
  });

  test.each([
    ["the check after a run", { attempt: 2 }, 0],
    [
      "the check after the last run, with an error from before a replay",
      { attempt: 6, errors: [failed(5)] },
      0,
    ],
    ["a new run after a failed one", { attempt: 2, errors: [failed(1)] }, 1],
    ["the check after a run, when an earlier run failed", { attempt: 3, errors: [failed(1)] }, 0],
  ])("a missing effect is a run or a failure, depending on the errors so far: %s", async (_, state, runs) => {
    ran.length = 0;
    const [outcome] = await runBatch(index, [{ seen: "missing" }], state);
    expect(ran).toHaveLength(runs);
    expect(outcome).toMatchObject(
      runs === 1
        ? { kind: "snooze", uses: 1 }
        : { kind: "retry", message: "its effect was not there 30 s after the run", uses: 0 },
    );
  });

  test("a run and the check that finds its effect are one attempt", async () => {
    expect(await runBatch(index, [{ seen: "there" }], { attempt: 2 })).toEqual([
      { kind: "complete", output: null, uses: 0 },
    ]);
  });

  test("a check that fails counts as a failure of its run", async () => {
    const blind = defineReconciledJob("blind", {
      payload: z.object({}),
      observe: () => Promise.reject(new Error("no index")),
      run: () => {},
    });
    expect(await runBatch(blind, [{}])).toMatchObject([{ kind: "retry", message: "no index" }]);
    expect(await runBatch(blind, [{}], { attempt: 2 })).toMatchObject([{ kind: "retry", uses: 0 }]);
  });

  test("a run that fails is an ordinary failure", async () => {
    const broken = defineReconciledJob("broken", {
      payload: z.object({}),
      observe: async (jobs) => jobs.map((): Observation => "missing"),
      run: () => Promise.reject(new FatalError("no index")),
    });
    expect(await runBatch(broken, [{}])).toMatchObject([{ kind: "bury", message: "no index" }]);
  });
});
