// defineJob: how a user defines a job type. The payload's schema gives the handler and every producer their types.
import type * as z from "zod";
import type { Json } from "../core/job.ts";
import type { Next } from "../core/next.ts";
import type { NoSlots, Slots } from "../core/typed-job.ts";
import type { HandlerContext, JobType } from "../queue/ports.ts";
import { type FlowContext, flowContext } from "./flow-context.ts";
import { createPayloadCheck, type OlderPayload } from "./payload.ts";
import { parseTypeOptions, type TypeOptions } from "./type-options.ts";

/** Accepts a JSON object. It may turn it into anything for the handler. */
export type PayloadSchema = z.ZodType<unknown, object>;

/** Most handlers return nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: that is what an async function without a return gives.
export type HandlerResult = Json | undefined | void;

export interface PayloadOptions<Schema extends PayloadSchema> extends TypeOptions {
  payload: Schema;
  /** Earlier shapes of the payload, newest first. */
  older?: readonly OlderPayload[];
}

/** The output that a handler's result gives its job. */
export type OutputOfResult<Result> =
  Result extends Next<infer Output> ? Output : Result extends Json ? Result : null;

export interface JobOptions<
  Schema extends PayloadSchema,
  Env = unknown,
  Result extends HandlerResult | Next = HandlerResult | Next,
  After extends Slots = Slots,
> extends PayloadOptions<Schema> {
  /** The jobs that one of this type waits for, by name: `{ parts: [extract] }` is any number, `{ plan }` is one. */
  after?: After;
  run(
    payload: z.output<Schema>,
    context: HandlerContext<Env> & FlowContext<After, z.input<Schema>>,
  ): Result | Promise<Result>;
}

export interface JobDefinition<
  Schema extends PayloadSchema = PayloadSchema,
  Output = unknown,
  After extends Slots = Slots,
> extends JobType {
  readonly payload: Schema;
  readonly after: After;
  /** Never set: it carries the type of the output. */
  readonly output?: Output;
}

export function defineJob<
  Schema extends PayloadSchema,
  Env = unknown,
  Result extends HandlerResult | Next = HandlerResult,
  const After extends Slots = NoSlots,
>(
  type: string,
  { payload, older, after, run, ...options }: JobOptions<Schema, Env, Result, After>,
): JobDefinition<Schema, OutputOfResult<Result>, After> {
  const check = createPayloadCheck(payload, older);
  const definition: JobDefinition<Schema, OutputOfResult<Result>, After> = {
    ...parseTypeOptions(type, options),
    payload,
    after: after ?? ({} as After),
    faultsOf: check.faultsOf,
    work: {
      kind: "single",
      run: async (job) => {
        const flow = flowContext(definition, definition.after, job.blockers);
        const result = await run(check.parse(job.payload), withFlow(job.context, flow) as never);
        return result ?? null;
      },
    },
  };
  return definition;
}

/** The getters of the flow stay getters. */
function withFlow(context: HandlerContext, flow: object): object {
  return Object.defineProperties({ ...context }, Object.getOwnPropertyDescriptors(flow));
}

/** A type without a handler in the Worker. Only pullers claim its jobs, or nobody does. */
export function definePulledJob<Schema extends PayloadSchema, const After extends Slots = NoSlots>(
  type: string,
  { payload, older, after, ...options }: PayloadOptions<Schema> & { after?: After },
): JobDefinition<Schema, Json, After> {
  const { faultsOf } = createPayloadCheck(payload, older);
  return {
    ...parseTypeOptions(type, options),
    payload,
    after: after ?? ({} as After),
    faultsOf,
    work: { kind: "pulled" },
  };
}
