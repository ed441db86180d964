// Scans a text of JSON for values that could not be stored unchanged, and that JSON.parse accepts: a name that is
// used twice in an object, a number that does not fit a double, text that Postgres cannot store, and too many levels. The
// scan reads each character once, and copies a token at most once, so its cost is linear in the size of the body.
import type { Fault } from "./errors.ts";

/** Code that visits a parsed value is recursive. This limit keeps it far from a stack overflow. */
const maxDepth = 100;
/** A double represents every number of up to 15 digits exactly. A number with up to 15 characters has no more digits. */
const maxExactLength = 15;

/** A string. Tests pass an object that counts how much of it is read. */
export interface Text {
  readonly length: number;
  charCodeAt(at: number): number;
  slice(start: number, end: number): string;
}

/** An object or array that contains the current position. */
interface Level {
  names: Set<string> | undefined;
  /** The name or index of the next value. */
  key: string | number;
  isNameNext: boolean;
}

const code = (character: string) => character.charCodeAt(0);
const quote = code('"');
const backslash = code("\\");
const minus = code("-");
const [zero, nine] = [code("0"), code("9")];

/** Does not check that the text is JSON: JSON.parse does that later. For other text the result means nothing. */
export function firstFault(text: Text): Fault | undefined {
  const levels: Level[] = [];
  const fault = (message: string): Fault => ({ path: levels.map(({ key }) => key).join("."), message });
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    const level = levels.at(-1);
    if (character === quote) {
      const end = endOfString(text, at);
      if (end === undefined) return undefined;
      const message = level?.isNameNext ? nameFault(text, at, end, level) : textFault(text, at, end);
      if (message) return fault(message);
      at = end.at;
    } else if (character === minus || (character >= zero && character <= nine)) {
      const end = endOfNumber(text, at);
      const message = numberFault(text, at, end);
      if (message) return fault(message);
      at = end.at;
    } else {
      enterOrLeave(levels, level, character);
      if (levels.length > maxDepth) return { path: "", message: `nested deeper than ${maxDepth} levels` };
    }
  }
  return undefined;
}

const [openObject, closeObject, openArray, closeArray, comma, colon] = [..."{}[],:"].map(code);

function enterOrLeave(levels: Level[], level: Level | undefined, character: number): void {
  if (character === openObject) levels.push({ names: undefined, key: "", isNameNext: true });
  else if (character === openArray) levels.push({ names: undefined, key: 0, isNameNext: false });
  else if (character === closeObject || character === closeArray) levels.pop();
  else if (level && character === colon) level.isNameNext = false;
  else if (level && character === comma) {
    if (typeof level.key === "number") level.key++;
    else level.isNameNext = true;
  }
}

/** The position of the last character of a token. */
interface End {
  at: number;
  /** A string with an escape, or a number with an exponent. Only these have to be parsed. */
  needsParsing: boolean;
}

/** Undefined if the string has no end. */
function endOfString(text: Text, start: number): End | undefined {
  let needsParsing = false;
  for (let at = start + 1; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === quote) return { at, needsParsing };
    if (character !== backslash) continue;
    needsParsing = true;
    at++; // an escaped quote does not end the string
  }
  return undefined;
}

function endOfNumber(text: Text, start: number): End {
  let needsParsing = false;
  let at = start + 1;
  for (; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (exponents.has(character)) needsParsing = true;
    else if (!numeric.has(character)) break;
  }
  return { at: at - 1, needsParsing };
}
const exponents = new Set([..."eE"].map(code));
const numeric = new Set([..."0123456789+-."].map(code));

function nameFault(text: Text, start: number, end: End, level: Level): string | undefined {
  const name = parseString(text, start, end);
  if (name === undefined) return undefined;
  level.key = name;
  level.names ??= new Set();
  if (level.names.has(name)) return "the name is used twice in one object";
  level.names.add(name);
  // JSON.parse makes it an ordinary property, but code that copies the object would set its prototype.
  if (name === "__proto__") return "the name __proto__ is not allowed";
  return isStorable(name) ? undefined : "the name contains a NUL character or half a surrogate pair";
}

/** Only an escape can produce these characters: the body was decoded from UTF-8, and JSON has no control characters. */
function textFault(text: Text, start: number, end: End): string | undefined {
  if (!end.needsParsing) return undefined;
  const value = parseString(text, start, end);
  return value === undefined || isStorable(value)
    ? undefined
    : "the text contains a NUL character or half a surrogate pair";
}

function parseString(text: Text, start: number, end: End): string | undefined {
  if (!end.needsParsing) return text.slice(start + 1, end.at);
  try {
    return JSON.parse(text.slice(start, end.at + 1));
  } catch {
    return undefined; // not a valid escape of JSON
  }
}

/** Postgres stores neither a NUL character nor half of a surrogate pair. */
const isStorable = (text: string) => !text.includes("\0") && text.isWellFormed();

function numberFault(text: Text, start: number, end: End): string | undefined {
  if (!end.needsParsing && end.at - start < maxExactLength) return undefined;
  const source = text.slice(start, end.at + 1);
  return isExact(Number(source), source)
    ? undefined
    : `the number ${source.slice(0, 40)} does not fit a double; send it as a string`;
}

/** True if the number is read back as it was written. With up to 15 digits it always is. */
function isExact(value: number, source: string): boolean {
  const digits = source.replace(/e.*$/i, "").replace(/[-.]/g, "").replace(/^0+/, "");
  const isInRange = Number.isFinite(value) && (value !== 0 || digits === "");
  return isInRange && (digits.length <= 15 || Number.isSafeInteger(value) || String(value) === source);
}
