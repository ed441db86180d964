// A type that is declared apart from its handler: producers and handlers get their types from it, and it checks both sides.
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { createClient, type OutputOf } from "../../src/client/client.ts";
import { FatalError } from "../../src/core/errors.ts";
import { Next } from "../../src/core/next.ts";
import type { StandardSchema } from "../../src/core/standard-schema.ts";
import { sluice } from "../../src/index.ts";
import { defineJob, definePulledJob } from "../../src/jobs/define.ts";
import { defineBatchJob } from "../../src/jobs/define-batch.ts";
import { definePushedJob } from "../../src/jobs/define-pushed.ts";
import { defineReconciledJob } from "../../src/jobs/define-reconciled.ts";
import { defineType } from "../../src/jobs/define-type.ts";
import type { HandlerContext } from "../../src/jobs/worker-env.ts";
import { enqueue, enqueueFlow } from "../../src/sql/in-transaction.ts";
import { runBatch, runSingle } from "../support/run-type.ts";

declare global {
  namespace Cloudflare {
    interface Env {
      MAIL_KEY?: string;
    }
  }
}

const part = defineType("part", {
  payload: z.object({ file: z.string() }),
  output: z.object({ rows: z.int() }),
  queue: "imports",
  maxAttempts: 3,
});
const whole = defineType("whole", { payload: z.object({ table: z.string() }), after: { parts: [part] } });
const countRows = defineJob(part, { timeoutSeconds: 10, run: ({ file }) => ({ rows: file.length }) });

const texts = [] as { text: string; values: unknown[] }[];
const transaction = {
  query: async (text: string, values: unknown[]) => {
    texts.push({ text, values });
    return { rows: [{ id: "an id", enqueue: "an id" }] };
  },
};

describe("a declared type", () => {
  test("has what producers need, and its handler's definition has the same", () => {
    expect(part).toMatchObject({ type: "part", queue: "imports", maxAttempts: 3 });
    expect(countRows).toMatchObject({ type: "part", queue: "imports", maxAttempts: 3, timeoutSeconds: 10 });
    expect(part.faultsOf({ file: 1 })).toMatchObject([{ path: "file" }]);
    expect(part).not.toHaveProperty("work");
  });

  test("is enqueued without its handler, and a wrong payload does not compile", async () => {
    await enqueue(transaction, part, { file: "a" });
    expect(texts.at(-1)?.values).toContain("imports");
    const client = createClient<{ part: typeof part }>({ url: "https://sluice.example", key: "sk" });
    const neverCalled = async () => {
      // @ts-expect-error: a file is a text
      await enqueue(transaction, part, { file: 1 });
      // @ts-expect-error: `after` is missing
      await enqueue(transaction, whole, { table: "t" });
      await enqueueFlow(transaction, (flow) =>
        flow.add(whole, { table: "t" }, { after: { parts: [flow.add(part, { file: "a" })] } }),
      );
      const ended = await client.wait(await client.enqueue(part, { file: "a" }));
      expectTypeOf(ended.output).toEqualTypeOf<{ rows: number } | null>();
      const named = await client.wait(await client.enqueue("part", { file: "a" }));
      expectTypeOf(named.output).toEqualTypeOf<{ rows: number } | null>();
      // @ts-expect-error: a misspelt name does not compile
      await client.enqueue("parts", { file: "a" });
    };
    expect(neverCalled).toBeTypeOf("function");
    await expect(enqueue(transaction, part, { file: 1 } as never)).rejects.toThrow("invalid payload");
  });

  test("gives each kind of handler its types", () => {
    const neverCalled = () => {
      defineJob(whole, {
        run: ({ table }, { outputs, env }) => {
          expectTypeOf(table).toEqualTypeOf<string>();
          expectTypeOf(outputs.parts).toEqualTypeOf<readonly { rows: number }[]>();
          expectTypeOf(env.MAIL_KEY).toEqualTypeOf<string | undefined>();
        },
      });
      // @ts-expect-error: rows is a number
      defineJob(part, { run: () => ({ rows: "many" }) });
      // @ts-expect-error: the queue belongs to the declaration
      defineJob(part, { queue: "other", run: () => ({ rows: 1 }) });
      defineJob(part, {
        run: (_, context: HandlerContext<{ DB: string }>) => ({ rows: context.env.DB.length }),
      });
      defineBatchJob(part, { run: async (jobs) => jobs.map(({ payload }) => ({ output: payload.file })) });
      defineReconciledJob(part, { observe: async (jobs) => jobs.map(() => "there"), run: () => {} });
      definePushedJob(part, { url: ({ MAIL_KEY }) => MAIL_KEY ?? "", secret: "whsec_" });
      expectTypeOf<OutputOf<ReturnType<typeof pulled>>>().toEqualTypeOf<{ rows: number }>();
    };
    const pulled = () => definePulledJob(part);
    expect(neverCalled).toBeTypeOf("function");
    expect(pulled().work).toEqual({ kind: "pulled" });
  });

  test("refuses an output that does not fit, but not a job that comes next", async () => {
    expect(await runSingle(countRows, { file: "abc" })).toEqual({ rows: 3 });
    const wrong = defineJob(part, { run: () => ({ rows: 1.5 }) });
    await expect(runSingle(wrong, { file: "a" })).rejects.toThrow(FatalError);
    await expect(runSingle(wrong, { file: "a" })).rejects.toThrow(/the output does not fit its schema: rows/);
    const batch = defineBatchJob(part, { run: async () => [{ output: { rows: 1 } }, { output: "many" }] });
    expect(await runBatch(batch, [{ file: "a" }, { file: "b" }])).toMatchObject([
      { kind: "complete", output: { rows: 1 } },
      { kind: "bury", message: expect.stringContaining("the output does not fit its schema") },
    ]);
    const goesOn = defineJob(part, { run: (_, { again }) => again({ file: "b" }) });
    expect(await runSingle(goesOn, { file: "a" })).toBeInstanceOf(Next);
  });

  test.each([
    { type: "Upper", options: {}, message: /job type "Upper": type: lower case/ },
    { type: "a", options: { queue: "a b" }, message: /queue: lower case/ },
    { type: "a", options: { maxAttempts: 0 }, message: /maxAttempts: a whole number from 1 to 20/ },
    { type: "a", options: { maxAttempts: 21 }, message: /maxAttempts/ },
    { type: "a", options: { maxAttempts: 1.5 }, message: /maxAttempts/ },
  ])("is refused with $options and the name $type", ({ type, options, message }) => {
    expect(() => defineType(type, { payload: z.object({}), ...options })).toThrow(message);
  });
});

describe("a schema of any library", () => {
  const schema = (validate: StandardSchema<{ n: number }, number>["~standard"]["validate"]) => ({
    "~standard": { version: 1, vendor: "a test", validate } as StandardSchema<
      { n: number },
      number
    >["~standard"],
  });
  const doubled = schema((value) => {
    const { n } = value as { n: unknown };
    return typeof n === "number"
      ? { value: 2 * n }
      : { issues: [{ message: "not a number", path: [{ key: "n" }, 0] }] };
  });

  test("checks the payload, and gives the handler what it made of it", async () => {
    const job = defineJob("doubled", { payload: doubled, run: (twice) => twice + 1 });
    expect(await runSingle(job, { n: 4 })).toBe(9);
    expect(job.faultsOf({ n: "4" })).toEqual([{ path: "n.0", message: "not a number" }]);
    await expect(runSingle(job, { n: "4" })).rejects.toThrow(
      "the payload does not fit its schema: n.0: not a number",
    );
  });

  test("must answer at once", () => {
    const job = defineType("late", { payload: schema(async () => ({ value: 1 })) });
    expect(() => job.faultsOf({ n: 1 })).toThrow("a schema must not check asynchronously");
  });

  test("of zod may not check asynchronously either", () => {
    const payload = z.object({ n: z.number() }).refine(async () => true);
    expect(() => defineType("late", { payload }).faultsOf({ n: 1 })).toThrow(TypeError);
  });
});

describe("sluice({ jobs })", () => {
  test("takes the types by name", () => {
    expect(sluice({ jobs: { part: countRows } })).toHaveProperty("scheduled");
  });

  test("refuses a name that is not the type's", () => {
    expect(() => sluice({ jobs: { parts: countRows } })).toThrow(
      'sluice({ jobs }): the name of "part" is "parts" in the list',
    );
  });
});
