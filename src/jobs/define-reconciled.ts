// defineReconciledJob: a job that is done only when its effect was seen, not when its handler returned.
//
// An attempt is a run and the look that follows it, two claims in all. The run is a snooze that uses the attempt: nothing
// has failed. The look uses none of its own: it completes the attempt of the run, or fails it when the effect is not there.
// So an effect that never comes ends the job after its maximum of runs, and one that comes leaves no error behind.
import type * as z from "zod";
import type { Outcome } from "../core/job.ts";
import { outcomeOf } from "../queue/drain/outcome.ts";
import type { HandlerContext, RunningJob } from "../queue/ports.ts";
import type { HandlerResult, JobDefinition, PayloadOptions, PayloadSchema } from "./define.ts";
import { type BatchItem, runFitting } from "./define-batch.ts";
import { checkPayload } from "./payload.ts";
import { parseTypeOptions } from "./type-options.ts";

export type Observation = "there" | "missing" | "gone";

export interface ReconciledJobOptions<Schema extends PayloadSchema, Env = unknown>
  extends PayloadOptions<Schema> {
  /** Says for each job whether its effect is there, is missing, or has lost its source. */
  observe(jobs: readonly BatchItem<z.output<Schema>, Env>[]): Promise<readonly Observation[]>;
  /** Brings the effect about. A later claim looks whether it is there. */
  run(payload: z.output<Schema>, context: HandlerContext<Env>): HandlerResult | Promise<HandlerResult>;
  /** When to look again after a run. Default 60. */
  observeAfterSeconds?: number;
}

export function defineReconciledJob<Schema extends PayloadSchema, Env = unknown>(
  type: string,
  { payload, older, observe, run, observeAfterSeconds = 60, ...options }: ReconciledJobOptions<Schema, Env>,
): JobDefinition<Schema> {
  const check = checkPayload(payload, older);
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

/** An attempt that was used and has not failed: its run has ended well, and this claim is the look. */
function isAfterRun(job: RunningJob | undefined): boolean {
  if (!job) return false;
  const { attempt, maxAttempts } = job.context;
  return attempt > 1 && (job.errors.at(-1)?.attempt !== attempt - 1 || attempt > maxAttempts);
}

/** What observe() throws is what it says of each. */
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

/** The look and the run before it are one attempt. */
function withRun(outcome: Outcome): Outcome {
  const isEnd = outcome.kind === "complete" || outcome.kind === "retry" || outcome.kind === "bury";
  return isEnd ? { ...outcome, uses: 0 } : outcome;
}
