// Runs for a given time, and stops at once when it is aborted.
import * as z from "zod";
import { defineJob } from "../define.ts";

export const sleep = defineJob("sleep", {
  payload: z.object({ ms: z.number().int().min(0).max(600_000) }),
  run: ({ ms }, { signal }) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    }),
});
