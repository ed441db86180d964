// defineJob: how a user defines a job type. The payload's schema gives the handler and every producer their types. A type
// that was declared by defineType gets its handler in the same way: it stands in the place of the name.
import type { Json } from "../core/job.ts";
import type { Next } from "../core/next.ts";
import type { InputOf, ParsedBy } from "../core/standard-schema.ts";
import type { NoSlots, Slots } from "../core/typed-job.ts";
import type { JobType } from "../queue/ports.ts";
import {
  type DeclareOptions,
  defineType,
  type PayloadOptions,
  type PayloadSchema,
  type TypeDefinition,
} from "./define-type.ts";
import { type FlowContext, flowContext } from "./flow-context.ts";
import { type HandlerOptions, parseTypeOptions, type TypeOptions } from "./type-options.ts";
import type { HandlerContext, WorkerEnv } from "./worker-env.ts";

/** Most handlers return nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: that is what an async function without a return gives.
export type HandlerResult = Json | undefined | void;

/** The output that a handler's result gives its job. */
export type OutputOfResult<Result> =
  Result extends Next<infer Output> ? Output : Result extends Json ? Result : null;

/** What the handler of a declared type may return. */
export type ResultFor<Output> = Json extends Output ? HandlerResult | Next : Output | Next<Output>;

export interface Handler<Schema extends PayloadSchema, After extends Slots, Env, Result> {
  run(
    payload: ParsedBy<Schema>,
    context: HandlerContext<Env> & FlowContext<After, InputOf<Schema>>,
  ): Result | Promise<Result>;
}

export interface JobOptions<
  Schema extends PayloadSchema,
  Env = WorkerEnv,
  Result extends HandlerResult | Next = HandlerResult | Next,
  After extends Slots = Slots,
> extends PayloadOptions<Schema>,
    TypeOptions,
    Handler<Schema, After, Env, Result> {
  /** The jobs that one of this type waits for, by name: `{ parts: [extract] }` is any number, `{ plan }` is one. */
  after?: After;
}

export interface JobDefinition<
  Schema extends PayloadSchema = PayloadSchema,
  Output = unknown,
  After extends Slots = Slots,
> extends TypeDefinition<Schema, Output, After>,
    Omit<JobType, keyof TypeDefinition> {}

export function defineJob<Schema extends PayloadSchema, Output, After extends Slots, Env = WorkerEnv>(
  type: TypeDefinition<Schema, Output, After>,
  options: HandlerOptions & Handler<Schema, After, Env, ResultFor<Output>>,
): JobDefinition<Schema, Output, After>;
export function defineJob<
  Schema extends PayloadSchema,
  Env = WorkerEnv,
  Result extends HandlerResult | Next = HandlerResult,
  const After extends Slots = NoSlots,
>(
  type: string,
  options: JobOptions<Schema, Env, Result, After>,
): JobDefinition<Schema, OutputOfResult<Result>, After>;
export function defineJob(
  type: string | TypeDefinition,
  { run, ...options }: TypeOptions & Handler<PayloadSchema, Slots, never, unknown>,
): JobDefinition {
  const declared = withOptions(type, options);
  return {
    ...declared,
    work: {
      kind: "single",
      run: async (job) => {
        const flow = flowContext(declared, declared.after, job.blockers);
        return declared.outputOf(
          await run(declared.parse(job.payload), withFlow(job.context, flow) as never),
        );
      },
    },
  };
}

/** A type without a handler in the Worker. Only pullers claim its jobs, or nobody does. */
export function definePulledJob<Schema extends PayloadSchema, Output, After extends Slots>(
  type: TypeDefinition<Schema, Output, After>,
  options?: HandlerOptions,
): JobDefinition<Schema, Output, After>;
export function definePulledJob<Schema extends PayloadSchema, const After extends Slots = NoSlots>(
  type: string,
  options: PayloadOptions<Schema> & TypeOptions & { after?: After },
): JobDefinition<Schema, Json, After>;
export function definePulledJob(type: string | TypeDefinition, options: TypeOptions = {}): JobDefinition {
  return { ...withOptions(type, options), work: { kind: "pulled" } };
}

/** All of a definition but its work. With a name, the options of the declaration are among the others. */
export function withOptions(
  type: string | TypeDefinition,
  options: TypeOptions,
): Omit<JobDefinition, "work"> {
  if (typeof type !== "string") {
    const { queue, maxAttempts } = type;
    return { ...parseTypeOptions(type.type, { ...options, queue, maxAttempts }), ...type };
  }
  const parsed = parseTypeOptions(type, options);
  return { ...parsed, ...defineType(type, options as DeclareOptions<PayloadSchema, never, Slots>) };
}

/** The getters of the flow stay getters. */
function withFlow(context: HandlerContext<unknown>, flow: object): object {
  return Object.defineProperties({ ...context }, Object.getOwnPropertyDescriptors(flow));
}
