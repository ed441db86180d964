// Reads a JSON body: only so many bytes, only JSON, only what the schema allows.
import type { Context } from "hono";
import type * as z from "zod";
import { SluiceError } from "../../core/errors.ts";
import { faultsOf } from "../../jobs/faults.ts";
import { parseStrictJson } from "./strict-json.ts";

export async function readBody<Schema extends z.ZodType>(
  context: Context,
  schema: Schema,
  { maxBytes }: { maxBytes: number },
): Promise<z.output<Schema>> {
  if (!/^application\/(.+\+)?json\b/i.test(context.req.header("content-type") ?? "")) {
    throw new SluiceError("body_not_json", "send a JSON body with content-type: application/json");
  }
  const parsed = schema.safeParse(parseStrictJson(await readText(context.req.raw, maxBytes)));
  if (!parsed.success) {
    throw new SluiceError("request_invalid", "the body does not fit", {
      faults: faultsOf(parsed.error),
    });
  }
  return parsed.data;
}

export function parseQuery<Schema extends z.ZodType>(context: Context, schema: Schema): z.output<Schema> {
  // An empty parameter is one that was left out.
  const given = Object.entries(context.req.query()).filter(([, value]) => value !== "");
  const parsed = schema.safeParse(Object.fromEntries(given));
  if (parsed.success) return parsed.data;
  throw new SluiceError("request_invalid", "the query does not fit", { faults: faultsOf(parsed.error) });
}

/** Counts while reading: a body that is too large, or that lies about its length, is not read to its end. */
async function readText(request: Request, maxBytes: number): Promise<string> {
  const tooLarge = () => new SluiceError("body_too_large", `the body is larger than ${maxBytes} bytes`);
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw tooLarge();
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
