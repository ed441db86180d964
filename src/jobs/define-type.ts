// defineType: a job type without its handler. Producers import it, and the Worker gives it a handler: `defineJob(type, …)`. It
// imports neither the engine nor a schema library, so that a producer's bundle stays small.
import type { Fault } from "../core/errors.ts";
import type { Json, Payload } from "../core/job.ts";
import { jobLimits } from "../core/job-options.ts";
import { Next } from "../core/next.ts";
import type { InputOf, ParsedBy, StandardSchema } from "../core/standard-schema.ts";
import type { NoSlots, Slots } from "../core/typed-job.ts";
import { createPayloadCheck, type OlderPayload, parse } from "./payload.ts";

/** Accepts a JSON object. It may turn it into anything for the handler. */
export type PayloadSchema = StandardSchema<object, unknown>;

export interface PayloadOptions<Schema extends PayloadSchema> {
  payload: Schema;
  /** Earlier shapes of the payload, newest first. */
  older?: readonly OlderPayload[];
}

/** What a producer has to know about a type. */
export interface ProducedType {
  /** The queue of its jobs, unless the producer names another. Default "default". */
  queue?: string;
  /** 1 to 20, default 5. */
  maxAttempts?: number;
}

export interface DeclareOptions<
  Schema extends PayloadSchema,
  Output extends StandardSchema,
  After extends Slots,
> extends PayloadOptions<Schema>,
    ProducedType {
  /** The shape of what its handler returns. It is stored as it was returned; what does not fit makes the job dead. */
  output?: Output;
  /** The jobs that one of this type waits for, by name: `{ parts: [extract] }` is any number, `{ plan }` is one. */
  after?: After;
}

export interface TypeDefinition<
  Schema extends PayloadSchema = PayloadSchema,
  Output = unknown,
  After extends Slots = Slots,
> {
  readonly type: string;
  readonly queue: string;
  readonly maxAttempts: number;
  readonly payload: Schema;
  readonly after: After;
  /** Never set: it carries the type of the output. */
  readonly output?: Output;
  /** The faults of a payload. Empty if it can be enqueued. */
  faultsOf(payload: unknown): Fault[];
  /** The payload for the handler. */
  parse(stored: Payload): ParsedBy<Schema>;
  /** What is stored of a handler's result. */
  outputOf(result: unknown): Json | Next;
}

export const typeDefaults = { queue: "default", maxAttempts: 5 } as const;

/** An invalid option is an error when the producer or the Worker starts. */
export function defineType<
  Schema extends PayloadSchema,
  Output extends StandardSchema = StandardSchema<Json>,
  const After extends Slots = NoSlots,
>(
  type: string,
  options: DeclareOptions<Schema, Output, After>,
): TypeDefinition<Schema, InputOf<Output>, After> {
  const { queue = typeDefaults.queue, maxAttempts = typeDefaults.maxAttempts } = options;
  const { namePattern, nameRule, maxAttempts: most } = jobLimits;
  const faults = [
    ...(namePattern.test(type) ? [] : [`type: ${nameRule}`]),
    ...(namePattern.test(queue) ? [] : [`queue: ${nameRule}`]),
    ...(Number.isInteger(maxAttempts) && maxAttempts >= 1 && maxAttempts <= most
      ? []
      : [`maxAttempts: a whole number from 1 to ${most}`]),
  ];
  if (faults.length > 0) throw new TypeError(`job type "${type}": ${faults.join("; ")}`);
  const { payload, older, output, after = {} as After } = options;
  const outputOf = (result: unknown) => checkedOutput(output, result);
  return { type, queue, maxAttempts, payload, after, ...createPayloadCheck(payload, older), outputOf };
}

function checkedOutput(schema: StandardSchema | undefined, result: unknown): Json | Next {
  if (schema && !(result instanceof Next)) parse(schema, result ?? null, "the output");
  return (result ?? null) as Json | Next;
}
