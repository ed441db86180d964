// The shapes of debounce and throttle in a request, and which options exclude each other.
import * as z from "zod";
import { debounceModes, jobLimits } from "../core/job-options.ts";

const key = z.string().min(1).max(jobLimits.maxKeyLength);
const seconds = z.number().min(0).max(jobLimits.maxDelaySeconds);

const debounce = z
  .strictObject({
    key,
    mode: z
      .enum(debounceModes)
      .describe(
        "What happens to the waiting job. first: it is kept. last: this one replaces it. merge: its payload is a list, " +
          '{ "items": [ … ] }, and gets this one.',
      ),
    seconds: seconds.describe("How long the job waits. With the mode last, it waits that long again."),
    max_wait_seconds: seconds
      .nullish()
      .describe("For the mode last: the job is due this long after the first call, whatever follows."),
    max_items: z
      .int()
      .min(1)
      .max(jobLimits.maxItems)
      .nullish()
      .describe(
        "For the mode merge: a list of this length is due at once, and the next call makes a new job. Default 100.",
      ),
  })
  .refine(({ max_wait_seconds: longest, seconds }) => (longest ?? seconds) >= seconds, {
    path: ["max_wait_seconds"],
    message: "must be at least debounce.seconds",
  })
  .refine(({ max_items, mode }) => mode === "merge" || (max_items ?? null) === null, {
    path: ["max_items"],
    message: 'is only for the mode "merge"',
  });

const throttle = z.strictObject({ key, seconds: seconds.gt(0) });

/** Options that say whether there is a new job at all. They need a job that nobody waits for yet. */
export const bindingFields = {
  debounce: debounce
    .nullable()
    .default(null)
    .describe("Calls with one key make one job as long as that waits for its first run."),
  throttle: throttle.nullable().default(null).describe("At most one job for each key in so many seconds."),
};

/** A debounce decides when its job is due. A job that waits for others has no time of its own. */
const excludedBy = {
  debounce: ["throttle", "delay_seconds", "scheduled_at", "after"],
  throttle: ["after"],
} as const;

type Binding = Partial<Record<"debounce" | (typeof excludedBy)["debounce"][number], unknown>>;

export function refineBinding<Request extends z.ZodType<Binding>>(request: Request) {
  return request.superRefine((job, context) => {
    for (const option of ["debounce", "throttle"] as const) {
      const field = excludedBy[option].find((name) => isGiven(job[name]));
      if (field && job[option])
        context.addIssue({
          code: "custom",
          path: [field],
          message: `must not be given together with ${option}`,
        });
    }
  });
}

/** No delay is none, and neither is an empty list. */
function isGiven(value: unknown): boolean {
  return Boolean(value) && !(Array.isArray(value) && value.length === 0);
}
