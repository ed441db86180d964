// GET /v1/admin/deployment: the settings in effect, the bindings, and the state of the database. `sluice doctor` reads it.
import * as z from "zod";
import { time } from "./jobs.ts";

export const deploymentResponse = z.object({
  name: z
    .string()
    .describe("`SLUICE_ENVIRONMENT`, or else the host of the public URL, or else the database."),
  version: z.string(),
  settings: z.object({
    plan: z.enum(["free", "paid"]),
    max_drains: z.int(),
    max_depth: z.int(),
    max_sleep_minutes: z.number(),
    alarm_targets: z.array(z.string()).describe("Their names."),
    heartbeats: z.array(z.string()).describe("The rounds that call a heartbeat URL."),
    allow_private_targets: z.boolean(),
  }),
  /** Which bindings the Worker has. */
  bindings: z.object({
    self: z.boolean(),
    rate_limiter: z.boolean(),
    clock: z.boolean(),
    hyperdrive: z.boolean().describe("If it is bound and this is an answer, then its cache is off."),
  }),
  schema: z.object({ name: z.string(), version: z.int(), needed: z.int() }),
  database: z.object({
    now: time,
    /** What keeps Postgres from removing dead rows for the longest time. */
    oldest_transaction: z.object({ seconds: z.number(), source: z.string() }).nullable(),
  }),
  now: time.describe("By the Worker's clock, right after the database was read."),
});
export type DeploymentResponse = z.output<typeof deploymentResponse>;
