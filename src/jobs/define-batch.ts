// defineBatchJob: a handler that gets all jobs of a claimed batch and returns an answer for each.
import type * as z from "zod";
import type { Json, Outcome } from "../core/job.ts";
import type { NoSlots } from "../core/typed-job.ts";
import { outcomeOf } from "../queue/drain/outcome.ts";
import type { HandlerContext, RunningJob } from "../queue/ports.ts";
import type { JobDefinition, PayloadOptions, PayloadSchema } from "./define.ts";
import { createPayloadCheck, type PayloadCheck } from "./payload.ts";
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
): JobDefinition<Schema, Json, NoSlots> {
  const check = createPayloadCheck(payload, older);
  return {
    ...parseTypeOptions(type, options),
    payload,
    after: {},
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

/** Runs the jobs whose payload fits, and buries the others, in the order of the jobs. */
export async function runFitting<Payload, Env>(
  check: PayloadCheck<Payload>,
  jobs: readonly RunningJob[],
  run: (items: BatchItem<Payload, Env>[], fitting: readonly RunningJob[]) => Promise<readonly Outcome[]>,
): Promise<Outcome[]> {
  const outcomes: (Outcome | undefined)[] = jobs.map((job) => faultOf(check, job));
  const fitting = jobs.filter((_, index) => !outcomes[index]);
  const items = fitting.map((job) => ({
    payload: check.parse(job.payload),
    context: job.context as HandlerContext<Env>,
  }));
  const answers = [...(await run(items, fitting))];
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
  if (typeof answer !== "object" || answer === null) {
    return outcomeOf(new Error("the handler's answer for this job is neither an output nor an error"));
  }
  return "error" in answer ? outcomeOf(answer.error) : { kind: "complete", output: answer.output ?? null };
}
