// A rate as a deployment writes it: at most so many in a period.
import * as z from "zod";

export interface Rate {
  limit: number;
  per: "second" | "minute" | "hour" | number;
}

const periodSeconds = { second: 1, minute: 60, hour: 3600 } as const;
const yearSeconds = 31_536_000;

export const rateSchema = z
  .object({
    limit: z.int().min(1),
    per: z.union([z.enum(["second", "minute", "hour"]), z.number().positive().max(yearSeconds)]),
  })
  .transform(({ limit, per }) => ({ limit, perSeconds: typeof per === "number" ? per : periodSeconds[per] }));
