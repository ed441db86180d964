// defineBatchJob: a handler that takes all jobs of a claimed batch at once and answers for each.
// defineReconciledJob: one that is done only when its effect was seen, not when its handler returned.
import type * as z from "zod";
import type { Json, Outcome } from "../core/job.ts";
import { outcomeOf } from "../queue/outcome.ts";
import type { HandlerContext, RunningJob } from "../queue/ports.ts";
import type { HandlerResult, JobDefinition, PayloadOptions, PayloadSchema } from "./define.ts";
import { checkPayload, type PayloadCheck } from "./payload.ts";
import { parseTypeOptions } from "./type-options.ts";

export interface BatchItem<Payload, Env = unknown> {
  readonly payload: Payload;
  readonly context: HandlerContext<Env>;
}

/** An answer for one job: what it returned, or the error that it would have thrown. */
export type BatchAnswer = { output?: Json } | { error: unknown };

export interface BatchJobOptions<Schema extends PayloadSchema, Env = unknown> extends PayloadOptions<Schema> {
  /** One answer for each job, in the order of the jobs. */
  run(
    jobs: readonly BatchItem<z.output<Schema>, Env>[],
    context: { signal: AbortSignal; env: Env },
  ): Promise<readonly BatchAnswer[]>;
}

export function defineBatchJob<Schema extends PayloadSchema, Env = unknown>(
  type: string,
  { payload, older, run, ...options }: BatchJobOptions<Schema, Env>,
): JobDefinition<Schema> {
  const check = checkPayload(payload, older);
  return {
    ...parseTypeOptions(type, options),
    payload,
    faultsOf: check.faultsOf,
    work: {
      kind: "batch",
      run: (jobs) =>
        runFitting(check, jobs, async (items: BatchItem<z.output<Schema>, Env>[]) => {
          const [first] = items;
          if (!first) return [];
          const answers = await run(items, { signal: first.context.signal, env: first.context.env });
          return answers.map(outcomeOfAnswer);
        }),
    },
  };
}

export type Observation = "there" | "missing" | "gone";

export interface ReconciledJobOptions<Schema extends PayloadSchema, Env = unknown>
  extends PayloadOptions<Schema> {
  /** Says for each job whether its effect is there, is missing, or has lost its source. */
  observe(jobs: readonly BatchItem<z.output<Schema>, Env>[]): Promise<readonly Observation[]>;
  /** Brings the effect about. The next attempt looks whether it is there. */
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
      return { kind: "retry", message: "its effect was not there yet", retryInSeconds: observeAfterSeconds };
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
        runFitting(check, jobs, async (items: BatchItem<z.output<Schema>, Env>[]) => {
          const seen = await observe(items);
          return Promise.all(
            items.map((item, index) =>
              seen[index] === "missing" ? runMissing(item) : completeIf(seen[index] !== undefined),
            ),
          );
        }),
    },
  };
}

/** Runs the jobs whose payload fits, and buries the others, in the order of the jobs. */
async function runFitting<Payload, Env>(
  check: PayloadCheck<Payload>,
  jobs: readonly RunningJob[],
  run: (items: BatchItem<Payload, Env>[]) => Promise<readonly Outcome[]>,
): Promise<Outcome[]> {
  const outcomes: (Outcome | undefined)[] = jobs.map((job) => faultOf(check, job));
  const items = jobs
    .filter((_, index) => !outcomes[index])
    .map((job) => ({ payload: check.parse(job.payload), context: job.context as HandlerContext<Env> }));
  const answers = [...(await run(items))];
  if (answers.length !== items.length) {
    throw new Error(`the handler answered for ${answers.length} of ${items.length} jobs`);
  }
  return outcomes.map((outcome) => outcome ?? answers.shift() ?? { kind: "release" });
}

function faultOf(check: PayloadCheck<unknown>, job: RunningJob): Outcome | undefined {
  try {
    check.parse(job.payload);
    return undefined;
  } catch (error) {
    return outcomeOf(error);
  }
}

function outcomeOfAnswer(answer: BatchAnswer): Outcome {
  return "error" in answer ? outcomeOf(answer.error) : { kind: "complete", output: answer.output ?? null };
}

function completeIf(isObserved: boolean): Promise<Outcome> {
  if (!isObserved) throw new Error("observe() did not answer for every job");
  return Promise.resolve({ kind: "complete", output: null });
}
