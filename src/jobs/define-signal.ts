// defineSignal: something that happens outside, for which a durable step can wait. It has a name, and each one a key.
import { jobLimits } from "../core/job-options.ts";
import type { ParsedBy, StandardSchema } from "../core/standard-schema.ts";
import type { Signal } from "../queue/steps/step.ts";
import { parse } from "./payload.ts";

export type SignalDefinition<Schema extends StandardSchema = StandardSchema> = Signal<ParsedBy<Schema>>;

export function defineSignal<Schema extends StandardSchema>(
  name: string,
  payload: Schema,
): SignalDefinition<Schema> {
  if (!jobLimits.namePattern.test(name)) throw new TypeError(`signal "${name}": ${jobLimits.nameRule}`);
  return { name, payload: { parse: (value) => parse(payload, value, `the signal "${name}"`) } };
}
