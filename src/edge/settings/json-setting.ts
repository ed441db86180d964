// Parses a setting that is JSON.
import * as z from "zod";

/**
 * A variable is text. In wrangler.toml the setting can also be a value. The type that newer releases of zod have for this
 * would not compile with the oldest one.
 */
export function jsonSetting<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>> {
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
