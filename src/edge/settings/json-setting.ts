// Parses a setting that is JSON.
import * as z from "zod";

/** A variable is text. In wrangler.toml the setting can also be a value. */
export function jsonSetting<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value, context) => {
    if (typeof value !== "string") return value;
    try {
      return JSON.parse(value);
    } catch {
      context.addIssue({ code: "custom", message: "must be JSON" });
      return z.NEVER;
    }
  }, schema);
}
