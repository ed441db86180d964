import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { FatalError } from "../../src/core/errors.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { createRegistry } from "../../src/jobs/registry.ts";
import type { HandlerContext } from "../../src/queue/ports.ts";

const context = {} as HandlerContext;
const greet = defineJob("greet", {
  payload: z.object({ name: z.string() }),
  run: ({ name }) => `hello ${name}`,
});

test("a handler gets the payload as its schema types it", () => {
  defineJob("typed", {
    payload: z.object({ at: z.string(), times: z.number().default(1) }),
    run: (payload) => {
      expectTypeOf(payload).toEqualTypeOf<{ at: string; times: number }>();
    },
  });
});

test("a stored payload that no longer fits is fatal and names the field", async () => {
  await expect(greet.run({ name: 7 }, context)).rejects.toThrow(FatalError);
  await expect(greet.run({ name: 7 }, context)).rejects.toThrow(/name: .*string/);
});

test("a handler that returns nothing completes with no output", async () => {
  const quiet = defineJob("quiet", { payload: z.object({}), run: () => {} });
  expect(await quiet.run({}, context)).toBeNull();
});

test.each(["", "Upper", "1st", "a b", "x".repeat(64)])("the type name %j is refused", (type) => {
  expect(() => defineJob(type, { payload: z.object({}), run: () => {} })).toThrow(/job type/);
});

test("one name for two types is refused", () => {
  expect(() => createRegistry([greet, greet])).toThrow('job type "greet" is defined twice');
});
