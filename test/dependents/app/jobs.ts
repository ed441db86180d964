// Job types with three schema libraries, declared apart from their handlers or not.
import { type } from "arktype";
import {
  defineBatchJob,
  defineJob,
  definePulledJob,
  definePushedJob,
  defineReconciledJob,
  defineSchedule,
  defineSignal,
  defineType,
} from "sluice";
import * as v from "valibot";
import * as z from "zod";

declare global {
  namespace Cloudflare {
    interface Env {
      GREETING: string;
    }
  }
}

export const welcome = defineType("welcome", {
  payload: z.object({ name: z.string(), times: z.number().default(1) }),
  output: z.object({ text: z.string() }),
});
export const welcomeJob = defineJob(welcome, {
  timeoutSeconds: 5,
  run: ({ name, times }, { env }) => ({ text: `${env.GREETING} ${name}`.repeat(times) }),
});
export const length = defineJob("length", {
  payload: v.object({ id: v.pipe(v.string(), v.minLength(2)) }),
  timeoutSeconds: 5,
  run: ({ id }) => id.length,
});
export const half = defineJob("half", {
  payload: type({ n: "number.integer" }),
  timeoutSeconds: 5,
  run: ({ n }) => n / 2,
});
const paid = defineSignal("paid", z.object({ cents: z.int() }));
const order = defineJob("order", {
  payload: z.object({ id: z.string() }),
  run: async ({ id }, { step }) => (await step.waitFor(paid, id))?.cents ?? null,
});
const url = "https://example.com/hook";
const payload = z.object({ id: z.string() });
export const jobs = {
  welcome: welcomeJob,
  length,
  half,
  order,
  batch: defineBatchJob("batch", {
    payload,
    run: async (items) => items.map(({ payload }) => ({ output: payload.id })),
  }),
  pulled: definePulledJob("pulled", { payload }),
  pushed: definePushedJob("pushed", { payload, url, secret: ({ GREETING }) => `whsec_${GREETING}` }),
  mirrored: defineReconciledJob("mirrored", {
    payload,
    observe: async (items) => items.map(() => "there"),
    run: () => {},
  }),
};
export const nightly = defineSchedule("nightly", {
  cron: "0 3 * * *",
  job: welcome,
  payload: { name: "all" },
});
