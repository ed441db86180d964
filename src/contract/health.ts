// The answer of GET /health.
import * as z from "zod";

/** Each check is "ok", "starting" right after a deployment, or one word for the problem. */
export const healthResponse = z.object({ status: z.string(), checks: z.record(z.string(), z.string()) });
export type HealthResponse = z.output<typeof healthResponse>;
