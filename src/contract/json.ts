// JSON inside of the API's shapes. A body is JSON when it gets to its schema, since it was parsed, so a JSON value is not
// walked over again; and a list that is too long is refused before its items are looked at.
import * as z from "zod";
import type { Json, Payload } from "../core/job.ts";

export const json = z.unknown() as z.ZodType<Json>;

export const jsonObject = z
  .custom<Payload>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "not a JSON object",
  )
  .meta({ type: "object", additionalProperties: true });

/** A schema of an array looks at every item before it counts them. */
export function listOf<Item extends z.ZodType>(item: Item, { min = 0, max }: { min?: number; max: number }) {
  const list = z.array(item).min(min).max(max);
  const counted = z.preprocess((value, context) => {
    if (!Array.isArray(value) || value.length <= max) return value;
    context.addIssue({ code: "too_big", origin: "array", maximum: max, inclusive: true, input: value });
    return z.NEVER;
  }, list);
  return z.nonoptional(counted); // what is preprocessed counts as optional in a JSON schema
}
