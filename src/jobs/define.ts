// defineJob: how a user defines a job type. The payload's schema gives the handler and every producer their types.
import type * as z from "zod";
import type { Fault } from "../core/errors.ts";
import type { Json } from "../core/job.ts";
import type { HandlerContext, JobType } from "../queue/ports.ts";
import type { Stored } from "../queue/steps/step.ts";
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

export interface JobOptions<
  Schema extends PayloadSchema,
  Env = unknown,
  Result extends HandlerResult = HandlerResult,
> extends PayloadOptions<Schema> {
  run(payload: z.output<Schema>, context: HandlerContext<Env>): Result | Promise<Result>;
}

export interface JobDefinition<Schema extends PayloadSchema = PayloadSchema, Output = unknown>
  extends JobType {
  readonly payload: Schema;
  /** The type of its outputs. There is no value. */
  readonly outputType?: Output;
  /** The faults of a payload. Empty if it can be enqueued. */
  faultsOf(payload: unknown): Fault[];
}

export function defineJob<
  Schema extends PayloadSchema,
  Env = unknown,
  Result extends HandlerResult = HandlerResult,
>(
  type: string,
  { payload, older, run, ...options }: JobOptions<Schema, Env, Result>,
): JobDefinition<Schema, Stored<Result>> {
  const check = createPayloadCheck(payload, older);
  return {
    ...parseTypeOptions(type, options),
    payload,
    faultsOf: check.faultsOf,
    work: {
      kind: "single",
      run: async (job) => {
        const result: HandlerResult = await run(check.parse(job.payload), job.context as HandlerContext<Env>);
        return result ?? null;
      },
    },
  };
}

/** A type without a handler in the Worker. Only pullers claim its jobs. */
export function definePulledJob<Schema extends PayloadSchema>(
  type: string,
  { payload, older, ...options }: PayloadOptions<Schema>,
): JobDefinition<Schema> {
  const { faultsOf } = createPayloadCheck(payload, older);
  return { ...parseTypeOptions(type, options), payload, faultsOf, work: { kind: "pulled" } };
}
