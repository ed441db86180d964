// A type's payload: its schema, and its earlier shapes. A payload that an older version of the app enqueued is upgraded
// step by step to the shape that today's handler takes.
import type * as z from "zod";
import { FatalError, type Fault } from "../core/errors.ts";
import type { Payload } from "../core/job.ts";
import { faultsOf } from "./faults.ts";

/** An earlier shape, and how to turn it into the next newer one. */
export interface OlderPayload {
  payload: z.ZodType;
  upgrade(payload: never): unknown;
}

export interface PayloadCheck<Output> {
  /** The faults of a payload that a producer wants to enqueue. Empty if there are none. */
  faultsOf(payload: unknown): Fault[];
  /** The payload for the handler. A payload that fits no shape is a fatal error, because no later attempt can succeed. */
  parse(stored: Payload): Output;
}

/** `older` is sorted, newest first. */
export function createPayloadCheck<Schema extends z.ZodType>(
  schema: Schema,
  older: readonly OlderPayload[] = [],
): PayloadCheck<z.output<Schema>> {
  const upgraded = (payload: unknown): unknown => {
    const version = older.findIndex((shape) => shape.payload.safeParse(payload).success);
    let value = payload;
    for (const shape of older.slice(0, version + 1).reverse()) {
      value = shape.upgrade(shape.payload.parse(value) as never);
    }
    return value;
  };
  const read = (payload: unknown) => {
    const current = schema.safeParse(payload);
    return current.success || older.length === 0 ? current : schema.safeParse(upgraded(payload));
  };
  return {
    faultsOf(payload) {
      const parsed = read(payload);
      return parsed.success ? [] : faultsOf(parsed.error);
    },
    parse(stored) {
      const parsed = read(stored);
      if (parsed.success) return parsed.data;
      throw new FatalError(`the payload does not fit its schema: ${describe(faultsOf(parsed.error))}`);
    },
  };
}

function describe(faults: readonly Fault[]): string {
  return faults.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join("; ");
}
