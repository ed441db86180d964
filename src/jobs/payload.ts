// A type's payload: its schema, and the shapes it had before. What was enqueued by an older version of the app is
// brought up step by step to the shape that today's handler takes.
import type * as z from "zod";
import { FatalError, type Fault } from "../core/errors.ts";
import type { Payload } from "../core/job.ts";
import { faultsOf } from "./faults.ts";

/** An older shape, and how to make the next newer one of it. */
export interface OlderPayload {
  payload: z.ZodType;
  upgrade(payload: never): unknown;
}

export interface PayloadCheck<Output> {
  /** What is wrong with a payload that somebody wants to enqueue; empty when nothing is. */
  faultsOf(payload: unknown): Fault[];
  /** The payload for the handler. One that fits no shape is fatal: no later attempt can do better. */
  parse(stored: Payload): Output;
}

/** `older`: the newest first. */
export function checkPayload<Schema extends z.ZodType>(
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
