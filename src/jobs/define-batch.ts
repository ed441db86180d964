// defineBatchJob: a handler that gets all jobs of a claimed batch and returns an answer for each.
import type { Json, Outcome } from "../core/job.ts";
import { completionOf } from "../core/next.ts";
import type { ParsedBy } from "../core/standard-schema.ts";
import type { NoSlots, Slots } from "../core/typed-job.ts";
import { outcomeOf } from "../queue/drain/outcome.ts";
import type { RunningJob } from "../queue/ports.ts";
import { type JobDefinition, withOptions } from "./define.ts";
import type { PayloadOptions, PayloadSchema, TypeDefinition } from "./define-type.ts";
import type { HandlerOptions, TypeOptions } from "./type-options.ts";
import type { HandlerContext, WorkerEnv } from "./worker-env.ts";

export interface BatchItem<Payload, Env = WorkerEnv> {
  readonly payload: Payload;
  readonly context: HandlerContext<Env>;
}

/** An answer for one job: what it returned, or the error that it would have thrown. */
export type BatchAnswer = { output?: Json } | { error: unknown };

export interface BatchHandler<Schema extends PayloadSchema, Env> {
  /** One answer for each job, in the order of the jobs. */
  run(
    jobs: readonly BatchItem<ParsedBy<Schema>, Env>[],
    context: { signal: AbortSignal; env: Env },
  ): Promise<readonly BatchAnswer[]>;
}

export function defineBatchJob<Schema extends PayloadSchema, Output, After extends Slots, Env = WorkerEnv>(
  type: TypeDefinition<Schema, Output, After>,
  options: HandlerOptions & BatchHandler<Schema, Env>,
): JobDefinition<Schema, Output, After>;
export function defineBatchJob<Schema extends PayloadSchema, Env = WorkerEnv>(
  type: string,
  options: PayloadOptions<Schema> & TypeOptions & BatchHandler<Schema, Env>,
): JobDefinition<Schema, Json, NoSlots>;
export function defineBatchJob(
  type: string | TypeDefinition,
  { run, ...options }: TypeOptions & BatchHandler<PayloadSchema, unknown>,
): JobDefinition {
  const declared = withOptions(type, options);
  return {
    ...declared,
    work: {
      kind: "batch",
      run: (jobs) =>
        runFitting(declared, jobs, async (items) => {
          const [first] = items;
          if (!first) return [];
          const answers = await run(items, { signal: first.context.signal, env: first.context.env });
          return answers.map((answer) => outcomeOfAnswer(declared, answer));
        }),
    },
  };
}

/** Runs the jobs whose payload fits, and buries the others, in the order of the jobs. */
export async function runFitting(
  type: Pick<TypeDefinition, "parse">,
  jobs: readonly RunningJob[],
  run: (items: BatchItem<unknown, unknown>[], fitting: readonly RunningJob[]) => Promise<readonly Outcome[]>,
): Promise<Outcome[]> {
  const outcomes: (Outcome | undefined)[] = jobs.map((job) => faultOf(type, job));
  const fitting = jobs.filter((_, index) => !outcomes[index]);
  const items = fitting.map((job) => ({ payload: type.parse(job.payload), context: job.context }));
  const answers = [...(await run(items, fitting))];
  if (answers.length !== items.length) {
    throw new Error(`the handler answered for ${answers.length} of ${items.length} jobs`);
  }
  return outcomes.map((outcome) => outcome ?? answers.shift() ?? { kind: "release" });
}

function faultOf(type: Pick<TypeDefinition, "parse">, job: RunningJob): Outcome | undefined {
  try {
    type.parse(job.payload);
    return undefined;
  } catch (error) {
    return outcomeOf(error);
  }
}

function outcomeOfAnswer(type: Pick<TypeDefinition, "outputOf">, answer: BatchAnswer): Outcome {
  if (typeof answer !== "object" || answer === null) {
    return outcomeOf(new Error("the handler's answer for this job is neither an output nor an error"));
  }
  if ("error" in answer) return outcomeOf(answer.error);
  try {
    return completionOf(type.outputOf(answer.output));
  } catch (error) {
    return outcomeOf(error);
  }
}
