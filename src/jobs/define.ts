// defineJob: a job type as its user writes it. The payload's schema types the handler and every producer.
import type * as z from "zod";
import { FatalError } from "../core/errors.ts";
import type { Json, Payload } from "../core/job.ts";
import { type Backoff, defaultBackoff } from "../core/policy/backoff.ts";
import type { Handler, HandlerContext } from "../queue/ports.ts";
import { faultsOf } from "./faults.ts";

// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing is the common one.
export type HandlerResult = Json | undefined | void;

export interface JobOptions<Schema extends z.ZodType<Payload>, Env = unknown> {
  payload: Schema;
  run(payload: z.output<Schema>, context: HandlerContext<Env>): HandlerResult | Promise<HandlerResult>;
  queue?: string;
  maxAttempts?: number;
  backoff?: Partial<Backoff>;
  timeoutSeconds?: number;
}

export interface JobDefinition<Schema extends z.ZodType<Payload> = z.ZodType<Payload>> extends Handler {
  readonly payload: Schema;
}

export function defineJob<Schema extends z.ZodType<Payload>, Env = unknown>(
  type: string,
  options: JobOptions<Schema, Env>,
): JobDefinition<Schema> {
  if (!/^[a-z][a-z0-9_.-]{0,62}$/.test(type)) {
    throw new TypeError(
      `job type "${type}": lower case letters, digits, ".", "_" and "-", at most 63, a letter first`,
    );
  }
  return {
    type,
    payload: options.payload,
    queue: options.queue ?? "default",
    maxAttempts: options.maxAttempts ?? 5,
    backoff: { ...defaultBackoff, ...options.backoff },
    timeoutSeconds: options.timeoutSeconds ?? 300,
    async run(stored, context) {
      const parsed = options.payload.safeParse(stored);
      // Checked at enqueue too; this one is an old payload that no longer fits the deployed schema.
      if (!parsed.success)
        throw new FatalError(`the payload does not fit its schema: ${describe(parsed.error)}`);
      return (await options.run(parsed.data, context as HandlerContext<Env>)) ?? null;
    },
  };
}

function describe(error: z.ZodError): string {
  return faultsOf(error)
    .map(({ path, message }) => (path ? `${path}: ${message}` : message))
    .join("; ");
}
