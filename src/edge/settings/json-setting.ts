// A setting that is JSON.
import * as z from "zod";

/** A variable is text; wrangler.toml can also hold the value itself. */
export function jsonSetting<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value, context) => {
    if (typeof value !== "string") return value;
    try {
      return JSON.parse(value);
    } catch {
      context.addIssue({ code: "custom", message: "is not JSON" });
      return z.NEVER;
    }
  }, schema);
}
