// The types of flows: what a handler gets from the jobs that it waited for, what continues it, and what a producer must give.
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { createClient, type JobId } from "../../src/client/client.ts";
import { describeFlow } from "../../src/core/flow.ts";
import { Next } from "../../src/core/next.ts";
import type { Blocker, OutputOf } from "../../src/core/typed-job.ts";
import { defineJob, definePulledJob } from "../../src/jobs/define.ts";
import { enqueue, enqueueFlow } from "../../src/sql/in-transaction.ts";
import { runSingle } from "../support/run-type.ts";

const extract = defineJob("extract", {
  payload: z.object({ file: z.string() }),
  run: ({ file }) => ({ rows: file.length }),
});
const plan = defineJob("plan", {
  payload: z.object({ table: z.string() }),
  run: ({ table }) => table,
});
const load = defineJob("load", {
  payload: z.object({ table: z.string() }),
  after: { parts: [extract], plan },
  run: ({ table }, { outputs }) => ({
    table,
    plan: outputs.plan,
    rows: outputs.parts.map(({ rows }) => rows),
  }),
});
const start = defineJob("start", {
  payload: z.object({ n: z.number() }),
  run: async ({ n }, { next, again }) => {
    if (n < 0) return again({ n: n + 1 });
    return n === 0 ? { nothing: true as const } : next(extract, { file: `${n}.csv` });
  },
});
const jobs = { extract, plan, load, start };

const completed = (output: unknown): Blocker => ({ jobId: "a", status: "completed", output });

describe("a handler", () => {
  test("gets the outputs of the jobs that it waited for, with their types", async () => {
    defineJob("typed", {
      payload: z.object({}),
      after: { parts: [extract], plan },
      run: (_, { outputs, blockers }) => {
        expectTypeOf(outputs.parts).toEqualTypeOf<readonly { rows: number }[]>();
        expectTypeOf(outputs.plan).toEqualTypeOf<string>();
        expectTypeOf(blockers.plan.output).toEqualTypeOf<string | null>();
        // @ts-expect-error: there is no such slot
        outputs.other;
      },
    });
    const blockers = { parts: [completed({ rows: 1 }), completed({ rows: 2 })], plan: [completed("p")] };
    expect(await runSingle(load, { table: "t" }, undefined, blockers)).toEqual({
      table: "t",
      plan: "p",
      rows: [1, 2],
    });
  });

  test("that reads the outputs of a job that is dead fails for good", async () => {
    const blockers = { parts: [], plan: [{ jobId: "a", status: "dead", output: null } as const] };
    await expect(runSingle(load, { table: "t" }, undefined, blockers)).rejects.toThrow(
      "the job a that this one waited for is dead",
    );
  });

  test("continues with a job of another type, or of its own", async () => {
    expect(await runSingle(start, { n: 0 })).toEqual({ nothing: true });
    const next = await runSingle(start, { n: 2 });
    expect(next).toBeInstanceOf(Next);
    expect(next).toMatchObject({ job: { type: "extract", payload: { file: "2.csv" }, queue: "default" } });
    expect(await runSingle(start, { n: -1 })).toMatchObject({ job: { type: "start", payload: { n: 0 } } });
    expectTypeOf<OutputOf<typeof start>>().toEqualTypeOf<{ rows: number } | { nothing: true }>();
  });

  test("cannot continue with a payload that does not fit", async () => {
    const wrong = defineJob("wrong", {
      payload: z.object({}),
      // @ts-expect-error: a file is a string
      run: (_, { next }) => next(extract, { file: 7 }),
    });
    await expect(runSingle(wrong, {})).rejects.toThrow('invalid payload for the type "extract"');
  });

  test("that returns nothing has the output null", () => {
    const quiet = defineJob("quiet", { payload: z.object({}), run: async () => {} });
    expectTypeOf<OutputOf<typeof quiet>>().toEqualTypeOf<null>();
  });
});

describe("a flow", () => {
  test("is described by jobs and what each waits for", () => {
    const { jobs: described, toIds } = describeFlow((flow) => {
      const parts = ["a", "b"].map((file) => flow.add(extract, { file }));
      const first = flow.add(plan, { table: "t" }, { priority: 9 } as never);
      const last = flow.add(
        load,
        { table: "t" },
        { after: { parts: [...parts, "id" as JobId<typeof extract>], plan: first } },
      );
      return { parts, last };
    });
    expect(
      described.map(({ ref, job, options, after }) => ({ ref, type: job.type, options, after })),
    ).toEqual([
      { ref: "0", type: "extract", options: {}, after: {} },
      { ref: "1", type: "extract", options: {}, after: {} },
      { ref: "2", type: "plan", options: { priority: 9 }, after: {} },
      { ref: "3", type: "load", options: {}, after: { parts: ["0", "1", { job_id: "id" }], plan: ["2"] } },
    ]);
    const ids = toIds(["w", "x", "y", "z"]);
    expect(ids).toEqual({ parts: ["w", "x"], last: "z" });
    expectTypeOf(ids.last).toEqualTypeOf<JobId<typeof load>>();
  });

  test("cannot use a job of another flow", () => {
    let other: ReturnType<typeof add>;
    const add = (flow: Parameters<Parameters<typeof describeFlow>[0]>[0]) => flow.add(plan, { table: "t" });
    describeFlow((flow) => {
      other = add(flow);
    });
    expect(() =>
      describeFlow((flow) => flow.add(load, { table: "t" }, { after: { parts: [], plan: other } })),
    ).toThrow("a job of another flow cannot be waited for");
  });

  test("does not compile with a missing or a wrong blocker", () => {
    expect.assertions(0); // the compiler checks it
    void (() =>
      enqueueFlow({} as never, (flow) => {
        const part = flow.add(extract, { file: "a" });
        const first = flow.add(plan, { table: "t" });
        flow.add(load, { table: "t" }, { after: { parts: [part], plan: first } });
        // @ts-expect-error: a load waits for its parts and its plan
        flow.add(load, { table: "t" });
        // @ts-expect-error: the plan is missing
        flow.add(load, { table: "t" }, { after: { parts: [part] } });
        // @ts-expect-error: an extract is not a plan
        flow.add(load, { table: "t" }, { after: { parts: [part], plan: part } });
        // @ts-expect-error: a file is a string
        flow.add(extract, { file: 1 });
      }));
  });
});

describe("a producer", () => {
  const client = createClient<typeof jobs>({ url: "http://localhost", key: "k" });
  const pulled = definePulledJob("pulled", { payload: z.object({}), after: { plan } });

  test("must give the ids of what a job waits for, and of the right types", () => {
    expect.assertions(0); // the compiler checks it
    void (async (part: JobId<typeof extract>, first: JobId<typeof plan>) => {
      await client.enqueue(
        "load",
        { table: "t" },
        { after: { parts: [part], plan: first }, onBlockerDead: "run" },
      );
      await client.enqueue(pulled, {}, { after: { plan: first } });
      await enqueue({} as never, load, { table: "t" }, { after: { parts: [], plan: first } });
      await client.enqueue("extract", { file: "a" }, { after: [part] });
      // @ts-expect-error: `after` is missing
      await client.enqueue("load", { table: "t" });
      // @ts-expect-error: a plan is not an extract
      await client.enqueue(load, { table: "t" }, { after: { parts: [first], plan: first } });
      // @ts-expect-error: `after` is missing
      await enqueue({} as never, load, { table: "t" });
    });
  });

  test("knows the type of the output that it waits for", () => {
    expect.assertions(0); // the compiler checks it
    void (async () => {
      const made = await client.enqueue("start", { n: 1 });
      const ended = await client.wait(made);
      expectTypeOf(ended.output).toEqualTypeOf<{ rows: number } | { nothing: true } | null>();
      const other = await client.wait("an id from elsewhere");
      expectTypeOf(other.output).toEqualTypeOf<unknown>();
      const { jobs: flow } = await client.enqueueFlow((flow) => ({ part: flow.add(extract, { file: "a" }) }));
      expectTypeOf((await client.wait(flow.part)).output).toEqualTypeOf<{ rows: number } | null>();
    });
  });
});
