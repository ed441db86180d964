// Fails a given number of times and then completes, to show retries.
import * as z from "zod";
import { defineJob } from "../define.ts";

export const flaky = defineJob("flaky", {
  payload: z.object({ fail_times: z.number().int().min(0) }),
  backoff: { baseSeconds: 1, maxSeconds: 1, jitterSeconds: 0 },
  timeoutSeconds: 10,
  run: ({ fail_times }, { attempt }) => {
    if (attempt <= fail_times) throw new Error(`attempt ${attempt} of ${fail_times} that fail`);
    return { attempt };
  },
});
