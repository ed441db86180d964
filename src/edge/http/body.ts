// Reads a JSON body: only so many bytes, only JSON, only what the schema allows.
import type { Context } from "hono";
import type * as z from "zod";
import { type Fault, SluiceError } from "../../core/errors.ts";
import { faultsOf } from "../../jobs/faults.ts";

export async function readBody<Schema extends z.ZodType>(
  context: Context,
  schema: Schema,
  { maxBytes }: { maxBytes: number },
): Promise<z.output<Schema>> {
  if (!/^application\/(.+\+)?json\b/i.test(context.req.header("content-type") ?? "")) {
    throw new SluiceError("body_not_json", "send a JSON body with content-type: application/json");
  }
  const parsed = schema.safeParse(parseJson(await readText(context.req.raw, maxBytes)));
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

/** JSON, and nothing in it that would come back as something else. */
function parseJson(text: string): unknown {
  const faults: Fault[] = [];
  const check = (key: string, value: unknown, context?: { source?: string }): unknown => {
    const fault = keyFault(key) ?? valueFault(value, context?.source);
    if (fault) faults.push({ path: key, message: fault });
    return value;
  };
  const parsed = parse(text, check);
  if (faults.length > 0)
    throw new SluiceError("request_invalid", "the body holds what cannot be kept", { faults });
  return parsed;
}

function parse(text: string, reviver: (key: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver);
  } catch (error) {
    throw new SluiceError("request_invalid", `the body is not JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Postgres keeps neither a NUL character nor half of a surrogate pair. */
const isStorable = (text: string) => !text.includes("\0") && text.isWellFormed();

function keyFault(key: string): string | undefined {
  return isStorable(key) ? undefined : "a name with a NUL character or half a surrogate pair in it";
}

function valueFault(value: unknown, source: string | undefined): string | undefined {
  if (typeof value === "string" && !isStorable(value))
    return "a NUL character or half a surrogate pair in it";
  if (typeof value === "number" && source !== undefined && !isExact(value, source)) {
    return `the number ${source.slice(0, 40)} does not fit a double: send it as a string`;
  }
  return undefined;
}

/** Would it be read back as it was written? Fifteen digits always are. */
function isExact(value: number, source: string): boolean {
  const digits = source.replace(/e.*$/i, "").replace(/[-.]/g, "").replace(/^0+/, "");
  const isInRange = Number.isFinite(value) && (value !== 0 || digits === "");
  return isInRange && (digits.length <= 15 || Number.isSafeInteger(value) || String(value) === source);
}
