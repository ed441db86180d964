// defineReconciledJob: a job that is completed when its effect is observed, not when its handler returns.
//
// One attempt is a run and a later check: two claims. The run ends as a snooze that uses the attempt, because nothing has
// failed yet. The check uses no attempt of its own. It completes the attempt, or fails it if the effect is missing. So a
// job whose effect never appears is dead after its maximum of runs, and a job whose effect appears has no error.
import type * as z from "zod";
import type { Outcome } from "../core/job.ts";
import type { NoSlots } from "../core/typed-job.ts";
import { outcomeOf } from "../queue/drain/outcome.ts";
import type { HandlerContext, RunningJob } from "../queue/ports.ts";
import type { HandlerResult, JobDefinition, PayloadOptions, PayloadSchema } from "./define.ts";
import { type BatchItem, runFitting } from "./define-batch.ts";
import { createPayloadCheck } from "./payload.ts";
import { parseTypeOptions } from "./type-options.ts";

export type Observation = "there" | "missing" | "gone";

export interface ReconciledJobOptions<Schema extends PayloadSchema, Env = unknown>
  extends PayloadOptions<Schema> {
  /** Says for each job whether its effect exists, is missing, or no longer has a source. */
  observe(jobs: readonly BatchItem<z.output<Schema>, Env>[]): Promise<readonly Observation[]>;
  /** Causes the effect. A later claim checks that it exists. */
  run(payload: z.output<Schema>, context: HandlerContext<Env>): HandlerResult | Promise<HandlerResult>;
  /** How long after a run the check happens. Default 60. */
  observeAfterSeconds?: number;
}

export function defineReconciledJob<Schema extends PayloadSchema, Env = unknown>(
  type: string,
  { payload, older, observe, run, observeAfterSeconds = 60, ...options }: ReconciledJobOptions<Schema, Env>,
): JobDefinition<Schema, null, NoSlots> {
  const check = createPayloadCheck(payload, older);
  const runMissing = async (item: BatchItem<z.output<Schema>, Env>): Promise<Outcome> => {
    try {
      await run(item.payload, item.context);
      return { kind: "snooze", retryInSeconds: observeAfterSeconds, uses: 1 };
    } catch (error) {
      return outcomeOf(error);
    }
  };
  return {
    ...parseTypeOptions(type, options),
    payload,
    after: {},
    faultsOf: check.faultsOf,
    work: {
      kind: "batch",
      run: (jobs) =>
        runFitting(check, jobs, async (items: BatchItem<z.output<Schema>, Env>[], fitting) => {
          const seen = await observed(observe, items);
          return Promise.all(
            items.map((item, index) => {
              const outcome = outcomeOfLook(seen[index], observeAfterSeconds);
              if (isAfterRun(fitting[index])) return withRun(outcome);
              return seen[index] === "missing" ? runMissing(item) : outcome;
            }),
          );
        }),
    },
  };
}

/** True if an attempt was used and has not failed. Then its run has ended well, and this claim is the check. */
function isAfterRun(job: RunningJob | undefined): boolean {
  if (!job) return false;
  const { attempt, maxAttempts } = job.context;
  return attempt > 1 && (job.errors.at(-1)?.attempt !== attempt - 1 || attempt > maxAttempts);
}

/** An error thrown by observe() counts for each job. */
async function observed<Item>(
  observe: (items: readonly Item[]) => Promise<readonly Observation[]>,
  items: readonly Item[],
): Promise<readonly (Observation | { error: unknown })[]> {
  try {
    const seen = await observe(items);
    if (seen.length === items.length) return seen;
    throw new Error(`observe() answered for ${seen.length} of ${items.length} jobs`);
  } catch (error) {
    return items.map(() => ({ error }));
  }
}

function outcomeOfLook(seen: Observation | { error: unknown } | undefined, seconds: number): Outcome {
  if (seen === "there" || seen === "gone") return { kind: "complete", output: null };
  if (seen === "missing")
    return { kind: "retry", message: `its effect was not there ${seconds} s after the run` };
  return outcomeOf(
    typeof seen === "object" ? seen.error : new Error(`observe() answered "${seen}": not one of its answers`),
  );
}

/** The check and the run before it are one attempt. */
function withRun(outcome: Outcome): Outcome {
  const isEnd = outcome.kind === "complete" || outcome.kind === "retry" || outcome.kind === "bury";
  return isEnd ? { ...outcome, uses: 0 } : outcome;
}
