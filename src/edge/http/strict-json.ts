// JSON in which nothing would come back as something else: every name once, no number that a double cannot hold, no
// text that Postgres cannot keep, and no deeper than anybody needs.
import { type Fault, SluiceError } from "../../core/errors.ts";

/** What walks over a value does so by recursion: this keeps it far from the end of the stack. */
const maxDepth = 100;

export function parseStrictJson(text: string): unknown {
  const faults: Fault[] = [];
  const check = (key: string, value: unknown, context?: { source?: string }): unknown => {
    const fault = keyFault(key) ?? valueFault(value, context?.source);
    if (fault) faults.push({ path: key, message: fault });
    return value;
  };
  const { depth, names } = shapeOf(text);
  if (depth > maxDepth) throw refusal([{ path: "", message: `nested deeper than ${maxDepth} levels` }]);
  const parsed = parse(text, check);
  if (faults.length === 0 && names !== countNames(parsed)) {
    faults.push({ path: "", message: "a name stands twice in one object" });
  }
  if (faults.length > 0) throw refusal(faults);
  return parsed;
}

function refusal(faults: readonly Fault[]): SluiceError {
  return new SluiceError("request_invalid", "the body holds what cannot be kept", { faults });
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

/** How deep it goes and how many names it has, read off the text: a parsed object no longer tells what stood twice. */
function shapeOf(text: string): { depth: number; names: number } {
  let depth = 0;
  let deepest = 0;
  let names = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[[\]{}]/gs)) {
    if (token.startsWith('"')) names += token.endsWith(":") ? 1 : 0;
    else if (token === "[" || token === "{") deepest = Math.max(deepest, ++depth);
    else depth--;
  }
  return { depth: deepest, names };
}

function countNames(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + countNames(item), 0);
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, item) => sum + 1 + countNames(item), 0);
}

/** Postgres keeps neither a NUL character nor half of a surrogate pair. */
const isStorable = (text: string) => !text.includes("\0") && text.isWellFormed();

function keyFault(key: string): string | undefined {
  // JSON.parse makes an ordinary property of it; whatever copies the object makes it the prototype.
  if (key === "__proto__") return "the name __proto__ is not taken";
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
