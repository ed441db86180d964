// Completes with its own payload as the output.
import * as z from "zod";
import type { Json } from "../../core/job.ts";
import { defineJob } from "../define.ts";

export const echo = defineJob("echo", {
  payload: z.looseObject({}),
  timeoutSeconds: 10,
  run: (payload) => payload as Json,
});
