// defineSignal: something that happens outside, for which a durable step can wait. It has a name, and each one a key.
import type * as z from "zod";
import { jobLimits } from "../core/job-options.ts";
import type { Signal } from "../queue/steps/step.ts";

export interface SignalDefinition<Schema extends z.ZodType = z.ZodType> extends Signal<z.output<Schema>> {
  readonly payload: Schema;
}

export function defineSignal<Schema extends z.ZodType>(
  name: string,
  payload: Schema,
): SignalDefinition<Schema> {
  if (!jobLimits.namePattern.test(name)) throw new TypeError(`signal "${name}": ${jobLimits.nameRule}`);
  return { name, payload };
}
