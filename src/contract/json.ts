// JSON values and lists in the API's shapes. A body is parsed before it gets to its schema, so a JSON value is not checked
// again. A list that is too long is refused before its items are checked.
import * as z from "zod";
import type { Json, Payload } from "../core/job.ts";

export const json = z.unknown() as z.ZodType<Json>;

export const jsonObject = z
  .custom<Payload>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "must be a JSON object",
  )
  .meta({ type: "object", additionalProperties: true });

/** The array schema of zod checks every item before it counts them. Its type is one that all versions of zod 4 have. */
export function limitedList<Item extends z.ZodType>(
  item: Item,
  { min = 0, max }: { min?: number; max: number },
): z.ZodType<z.output<Item>[], z.input<Item>[]> {
  const list = z.array(item).min(min).max(max);
  const counted = z.preprocess((value, context) => {
    if (!Array.isArray(value) || value.length <= max) return value;
    context.addIssue({ code: "too_big", origin: "array", maximum: max, inclusive: true, input: value });
    return z.NEVER;
  }, list);
  return z.nonoptional(counted) as never; // a preprocessed field would be optional in the JSON schema
}
