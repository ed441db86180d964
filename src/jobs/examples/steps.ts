// Shows durable steps: a step, a sleep, a wait for the signal "go" if the payload has a key for it, and a second step. The output
// says how often the function of each step has run, in all attempts and invocations.
import * as z from "zod";
import type { Step } from "../../queue/steps/step.ts";
import { defineJob } from "../define.ts";
import { defineSignal } from "../define-signal.ts";

export const go = defineSignal("go", z.json());

export const steps = defineJob("steps", {
  payload: z.object({
    sleep_seconds: z.number().min(0).max(86_400),
    signal_key: z.string().min(1).max(255).optional(),
  }),
  timeoutSeconds: 10,
  backoff: { baseSeconds: 1, maxSeconds: 1, jitterSeconds: 0 },
  run: async ({ sleep_seconds, signal_key }, { step }) => {
    const firstRuns = await step.run("first", () => countRun(step, "first"));
    await step.sleep("between", sleep_seconds);
    const signal = signal_key === undefined ? null : await step.waitFor(go, signal_key);
    const secondRuns = await step.run("second", () => countRun(step, "second"));
    return { first_runs: firstRuns, second_runs: secondRuns, signal };
  },
});

/**
 * The number of this run. Each run stores a mark of its own before it does anything else, in the first place that is free, so
 * the count survives a crash.
 */
async function countRun(step: Step, name: string): Promise<number> {
  const mark = crypto.randomUUID();
  for (let number = 1; ; number++) {
    if ((await step.run(`${name} began ${number}`, () => mark)) === mark) return number;
  }
}
