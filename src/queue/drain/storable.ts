// What Postgres can keep of what a handler leaves behind: an output is checked, the text of an error is cleaned and cut.
// So a settle is never refused for what one of its jobs said.
import type { Json, Outcome } from "../../core/job.ts";

/** The limit of an output as JSON text. A puller can send as much for one job. */
export const maxOutputCharacters = 1024 * 1024;
/** As in a request: far from the end of the stack, here and in Postgres. */
const maxOutputDepth = 100;

/**
 * An output that cannot be kept is fatal for its job. The handler has done its work; to run it again would do the work
 * again and most likely end with the same output. Dead, it is seen, and can be replayed when the handler is mended.
 */
export function withStorableOutput(outcome: Outcome): Outcome {
  if (outcome.kind !== "complete") return outcome;
  try {
    return { ...outcome, output: storableJson(outcome.output) };
  } catch (error) {
    return { kind: "bury", message: storableText(`the output cannot be kept: ${textOf(error)}`, 1000) };
  }
}

/** A copy: what the handler still does to the object that it returned changes nothing. Throws if it cannot be kept. */
export function storableJson(output: unknown): Json {
  if (output === undefined || output === null) return null;
  const text = JSON.stringify(output, checked) as string | undefined;
  if (text === undefined) return null; // its toJSON() says so
  if (text.length > maxOutputCharacters) {
    throw new Error(`${text.length} characters of JSON are more than ${maxOutputCharacters}`);
  }
  const copy = JSON.parse(text) as Json;
  if (depthOf(copy) > maxOutputDepth) throw new Error(`it is nested deeper than ${maxOutputDepth} levels`);
  return copy;
}

/** As JSON.stringify() does, a field that is undefined is left out. */
function checked(key: string, value: unknown): unknown {
  if (!isStorable(key)) throw new Error("a name has a NUL character or half a surrogate pair in it");
  const fault = faultOf(value);
  if (fault) throw new Error(key === "" ? `it is ${fault}` : `"${key}" is ${fault}`);
  return value;
}

function faultOf(value: unknown): string | undefined {
  if (typeof value === "string") {
    return isStorable(value) ? undefined : "a text with a NUL character or half a surrogate pair in it";
  }
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${value}, which is not JSON`;
  const isForeign = typeof value === "bigint" || typeof value === "function" || typeof value === "symbol";
  return isForeign ? `a ${typeof value}, which is not JSON` : undefined;
}

/** Postgres keeps neither a NUL character nor half of a surrogate pair. */
function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}

function depthOf(value: Json): number {
  if (typeof value !== "object" || value === null) return 0;
  let deepest = 0;
  for (const item of Object.values(value)) deepest = Math.max(deepest, depthOf(item));
  return deepest + 1;
}

/** Cleaned and cut: of an error, some text is better than none. */
export function storableText(text: string, maxCharacters: number): string {
  return text.slice(0, maxCharacters).replaceAll("\0", "\uFFFD").toWellFormed();
}

/** Whatever was thrown, and whatever it does when it is looked at. */
export function textOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return "an error that cannot be read";
  }
}
