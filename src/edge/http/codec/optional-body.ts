// Reads a JSON body whose fields are all optional: no body is an empty one.
import type { Context } from "hono";
import type * as z from "zod";
import { readBody } from "./body.ts";

export async function readOptionalBody<Schema extends z.ZodType>(
  context: Context,
  schema: Schema,
  limits: { maxBytes: number },
): Promise<z.output<Schema>> {
  const { body, headers } = context.req.raw;
  if (!body || headers.get("content-length") === "0") return schema.parse({});
  return readBody(context, schema, limits);
}
