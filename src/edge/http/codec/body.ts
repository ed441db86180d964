// Reads a JSON body (UTF-8, of a limited size) and the query string, and checks both with their schemas.
import type { Context } from "hono";
import type * as z from "zod";
import type { RequestBody } from "../../../contract/operation.ts";
import { SluiceError } from "../../../core/errors.ts";
import { parseStrictJson } from "../../../core/strict-json.ts";
import { faultsOf } from "../../../jobs/faults.ts";

export async function readBody(context: Context, { schema, maxBytes, isOptional }: RequestBody) {
  const { body, headers } = context.req.raw;
  if (isOptional && (!body || headers.get("content-length") === "0")) return schema.parse({});
  checkMediaType(headers);
  const parsed = schema.safeParse(parseStrictJson(await readText(context.req.raw, maxBytes)));
  if (parsed.success) return parsed.data;
  throw new SluiceError("request_invalid", "the body is invalid", { faults: faultsOf(parsed.error) });
}

export function parseQuery<Schema extends z.ZodType>(context: Context, schema: Schema): z.output<Schema> {
  // An empty parameter counts as missing.
  const parameters = Object.entries(context.req.query()).filter(([, value]) => value !== "");
  const parsed = schema.safeParse(Object.fromEntries(parameters));
  if (parsed.success) return parsed.data;
  throw new SluiceError("request_invalid", "the query is invalid", { faults: faultsOf(parsed.error) });
}

/** JSON is UTF-8 (RFC 8259). A compressed body, or one in another charset, would be stored as different text. */
function checkMediaType(headers: Headers): void {
  const [type = "", ...parameters] = (headers.get("content-type") ?? "").split(";");
  if (!/^application\/([\w!#$&^.-]+\+)?json$/i.test(type.trim())) {
    throw new SluiceError("body_not_json", "send a JSON body with the header content-type: application/json");
  }
  const charset = parameters.find((parameter) => /^\s*charset\s*=/i.test(parameter));
  if (charset && !/=\s*"?utf-?8"?\s*$/i.test(charset)) {
    throw new SluiceError("body_not_json", `send the body in UTF-8, not with${charset}`);
  }
  const encoding = headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    throw new SluiceError(
      "body_not_json",
      `send the body uncompressed, without content-encoding: ${encoding}`,
    );
  }
}

/** Counts the bytes while it reads, because Content-Length may be missing or wrong. */
export async function readText(request: Request, maxBytes: number): Promise<string> {
  const tooLarge = () => new SluiceError("body_too_large", `the body is larger than ${maxBytes} bytes`);
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let text = "";
  let bytes = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw tooLarge();
    text += decodeChunk(decoder, chunk);
  }
  return text + decodeChunk(decoder);
}

/** Call it without a chunk at the end: an incomplete character is an error then. */
function decodeChunk(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined });
  } catch (cause) {
    const faults = [{ path: "", message: "not UTF-8" }];
    throw new SluiceError("request_invalid", "the body is not UTF-8", { faults, cause });
  }
}
