// The canary: a job of our own that does nothing. Every deployment knows it, so that its completion proves the way of a
// job from enqueue to settle.
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
