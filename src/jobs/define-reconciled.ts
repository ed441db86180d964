// defineReconciledJob: a job that is completed when its effect is observed, not when its handler returns.
//
// One attempt is a run and a later check: two claims. The run ends as a snooze that uses the attempt, because nothing has
// failed yet. The check uses no attempt of its own. It completes the attempt, or fails it if the effect is missing. So a
// job whose effect never appears is dead after its maximum of runs, and a job whose effect appears has no error.
import type { Outcome } from "../core/job.ts";
import type { ParsedBy } from "../core/standard-schema.ts";
import type { NoSlots, Slots } from "../core/typed-job.ts";
import { outcomeOf } from "../queue/drain/outcome.ts";
import type { RunningJob } from "../queue/ports.ts";
import { type HandlerResult, type JobDefinition, withOptions } from "./define.ts";
import { type BatchItem, runFitting } from "./define-batch.ts";
import type { PayloadOptions, PayloadSchema, TypeDefinition } from "./define-type.ts";
import type { HandlerOptions, TypeOptions } from "./type-options.ts";
import type { HandlerContext, WorkerEnv } from "./worker-env.ts";

export type Observation = "there" | "missing" | "gone";

export interface ReconciledHandler<Schema extends PayloadSchema, Env> {
  /** Says for each job whether its effect exists, is missing, or no longer has a source. */
  observe(jobs: readonly BatchItem<ParsedBy<Schema>, Env>[]): Promise<readonly Observation[]>;
  /** Causes the effect. A later claim checks that it exists. */
  run(payload: ParsedBy<Schema>, context: HandlerContext<Env>): HandlerResult | Promise<HandlerResult>;
  /** How long after a run the check happens. Default 60. */
  observeAfterSeconds?: number;
}

export function defineReconciledJob<
  Schema extends PayloadSchema,
  Output,
  After extends Slots,
  Env = WorkerEnv,
>(
  type: TypeDefinition<Schema, Output, After>,
  options: HandlerOptions & ReconciledHandler<Schema, Env>,
): JobDefinition<Schema, null, After>;
export function defineReconciledJob<Schema extends PayloadSchema, Env = WorkerEnv>(
  type: string,
  options: PayloadOptions<Schema> & TypeOptions & ReconciledHandler<Schema, Env>,
): JobDefinition<Schema, null, NoSlots>;
export function defineReconciledJob(
  type: string | TypeDefinition,
  given: TypeOptions & ReconciledHandler<PayloadSchema, unknown>,
): JobDefinition<PayloadSchema, null> {
  const { observe, run, observeAfterSeconds = 60, ...options } = given;
  const { output: _, ...declared } = withOptions(type, options);
  const runMissing = async (item: BatchItem<unknown, unknown>): Promise<Outcome> => {
    try {
      await run(item.payload, item.context);
      return { kind: "snooze", retryInSeconds: observeAfterSeconds, uses: 1 };
    } catch (error) {
      return outcomeOf(error);
    }
  };
  return {
    ...declared,
    work: {
      kind: "batch",
      run: (jobs) =>
        runFitting(declared, jobs, async (items, fitting) => {
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
