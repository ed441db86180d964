// The canary: a job of Sluice's own that does nothing. Every deployment has it. When it completes, the whole path from
// enqueue to settle works.
import * as z from "zod";
import { canary } from "../core/alarms/alarm.ts";
import { defineJob } from "./define.ts";

export const canaryJob = defineJob(canary.type, {
  queue: canary.queue,
  payload: z.object({}),
  timeoutSeconds: 10,
  leaseSeconds: 60,
  run: () => {},
});
