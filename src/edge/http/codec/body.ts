// Reads a JSON body: only so many bytes, only JSON in UTF-8, only what the schema allows. And the query string.
import type { Context } from "hono";
import type * as z from "zod";
import { SluiceError } from "../../../core/errors.ts";
import { faultsOf } from "../../../jobs/faults.ts";
import { parseStrictJson } from "./strict-json.ts";

export async function readBody<Schema extends z.ZodType>(
  context: Context,
  schema: Schema,
  { maxBytes }: { maxBytes: number },
): Promise<z.output<Schema>> {
  checkMediaType(context.req.raw.headers);
  const parsed = schema.safeParse(parseStrictJson(await readText(context.req.raw, maxBytes)));
  if (parsed.success) return parsed.data;
  throw new SluiceError("request_invalid", "the body does not fit", { faults: faultsOf(parsed.error) });
}

export function parseQuery<Schema extends z.ZodType>(context: Context, schema: Schema): z.output<Schema> {
  // An empty parameter is one that was left out.
  const given = Object.entries(context.req.query()).filter(([, value]) => value !== "");
  const parsed = schema.safeParse(Object.fromEntries(given));
  if (parsed.success) return parsed.data;
  throw new SluiceError("request_invalid", "the query does not fit", { faults: faultsOf(parsed.error) });
}

/** JSON is UTF-8 (RFC 8259). What is packed or in another charset would be stored as something else. */
function checkMediaType(headers: Headers): void {
  const [type = "", ...parameters] = (headers.get("content-type") ?? "").split(";");
  if (!/^application\/([\w!#$&^.-]+\+)?json$/i.test(type.trim())) {
    throw new SluiceError("body_not_json", "send a JSON body with content-type: application/json");
  }
  const charset = parameters.find((parameter) => /^\s*charset\s*=/i.test(parameter));
  if (charset && !/=\s*"?utf-?8"?\s*$/i.test(charset)) {
    throw new SluiceError("body_not_json", `send the body in UTF-8, not with${charset}`);
  }
  const encoding = headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    throw new SluiceError("body_not_json", `send the body as it is, not with content-encoding: ${encoding}`);
  }
}

/** Counts while reading: a body that is too large, or that lies about its length, is not read to its end. */
async function readText(request: Request, maxBytes: number): Promise<string> {
  const tooLarge = () => new SluiceError("body_too_large", `the body is larger than ${maxBytes} bytes`);
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let text = "";
  let bytes = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw tooLarge();
    text += decoded(decoder, chunk);
  }
  return text + decoded(decoder);
}

/** Without a chunk: what is left of a character that was cut off. */
function decoded(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined });
  } catch (cause) {
    const faults = [{ path: "", message: "not UTF-8" }];
    throw new SluiceError("request_invalid", "the body is not UTF-8", { faults, cause });
  }
}
