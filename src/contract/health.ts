// The answer of GET /health.
import * as z from "zod";

/** Only if the deployment has a clock. */
const clockCheck = z.object({
  status: z.string().describe('"ok", "unreachable", or "overdue": it did not wake a drain in time.'),
  asleep: z.boolean().describe("The crons leave the database alone, because nothing is due."),
  next_due_at: z.string().nullable().describe("When the next job is due, as far as the clock knows."),
});
export type ClockCheck = z.output<typeof clockCheck>;

/** Each other check is "ok", "starting" right after a deployment, "asleep", or one word for the problem. */
export const healthResponse = z.object({
  status: z.string(),
  checks: z.object({ clock: clockCheck.optional() }).catchall(z.string()),
});
export type HealthResponse = z.output<typeof healthResponse>;
