// A type's payload: its schema, and its earlier shapes. A payload that an older version of the app enqueued is upgraded
// step by step to the shape that today's handler takes.
import { FatalError, type Fault } from "../core/errors.ts";
import type { Payload } from "../core/job.ts";
import type { ParsedBy, SchemaResult, StandardSchema } from "../core/standard-schema.ts";
import { faultsOf } from "./faults.ts";

/** An earlier shape, and how to turn it into the next newer one. */
export interface OlderPayload {
  payload: StandardSchema;
  upgrade(payload: never): unknown;
}

export interface PayloadCheck<Output> {
  /** The faults of a payload that a producer wants to enqueue. Empty if there are none. */
  faultsOf(payload: unknown): Fault[];
  /** The payload for the handler. A payload that fits no shape is a fatal error, because no later attempt can succeed. */
  parse(stored: Payload): Output;
}

/** `older` is sorted, newest first. */
export function createPayloadCheck<Schema extends StandardSchema>(
  schema: Schema,
  older: readonly OlderPayload[] = [],
): PayloadCheck<ParsedBy<Schema>> {
  const upgraded = (payload: unknown): unknown => {
    const version = older.findIndex((shape) => !validate(shape.payload, payload).issues);
    let value = payload;
    for (const shape of older.slice(0, version + 1).reverse()) {
      value = shape.upgrade(parse(shape.payload, value, "an older payload") as never);
    }
    return value;
  };
  const read = (payload: unknown) => {
    const current = validate(schema, payload);
    return !current.issues || older.length === 0 ? current : validate(schema, upgraded(payload));
  };
  return {
    faultsOf(payload) {
      const result = read(payload);
      return result.issues ? faultsOf(result) : [];
    },
    parse: (stored) => valueIn(read(stored), "the payload"),
  };
}

/** What the schema makes of the value. One that does not fit is a fatal error. */
export function parse<Schema extends StandardSchema>(
  schema: Schema,
  value: unknown,
  what: string,
): ParsedBy<Schema> {
  return valueIn(validate(schema, value), what);
}

function validate(schema: StandardSchema, value: unknown): SchemaResult<unknown> {
  const result = schema["~standard"].validate(value);
  if (!(result instanceof Promise)) return result;
  result.catch(() => {});
  throw new TypeError("a schema must not check asynchronously: a transaction would wait for it");
}

function valueIn(result: SchemaResult<unknown>, what: string): unknown {
  if (!result.issues) return result.value;
  throw new FatalError(`${what} does not fit its schema: ${describe(faultsOf(result))}`);
}

function describe(faults: readonly Fault[]): string {
  return faults.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join("; ");
}
