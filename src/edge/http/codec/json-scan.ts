// Looks at the text of a JSON body for what JSON.parse would change or drop in silence: a name that stands twice, a number
// that no double holds, text that Postgres cannot keep, too many levels. One walk over the text: each character is read
// once, and a token that is looked at closer is cut out once. So the cost grows with the size of the body and no faster.
import type { Fault } from "../../../core/errors.ts";

/** What walks over a parsed value does so by recursion: this keeps it far from the end of the stack. */
const maxDepth = 100;
/** A number of so many characters, without an exponent, has no more than fifteen digits: a double holds it. */
const surelyExact = 15;

/** A string, or in a test something that counts how much of it is read. */
export interface Text {
  readonly length: number;
  charCodeAt(at: number): number;
  slice(start: number, end: number): string;
}

/** An object or array that the walk is inside of. */
interface Level {
  names: Set<string> | undefined;
  /** Of the value that comes next. */
  key: string | number;
  isNameNext: boolean;
}

const code = (character: string) => character.charCodeAt(0);
const quote = code('"');
const backslash = code("\\");
const minus = code("-");
const [zero, nine] = [code("0"), code("9")];

/** Text that is not JSON at all is JSON.parse's to refuse: the walk ends there, or finds a fault all the same. */
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
      step(levels, level, character);
      if (levels.length > maxDepth) return { path: "", message: `nested deeper than ${maxDepth} levels` };
    }
  }
  return undefined;
}

const [openObject, closeObject, openArray, closeArray, comma, colon] = [..."{}[],:"].map(code);

function step(levels: Level[], level: Level | undefined, character: number): void {
  if (character === openObject) levels.push({ names: undefined, key: "", isNameNext: true });
  else if (character === openArray) levels.push({ names: undefined, key: 0, isNameNext: false });
  else if (character === closeObject || character === closeArray) levels.pop();
  else if (level && character === colon) level.isNameNext = false;
  else if (level && character === comma) {
    if (typeof level.key === "number") level.key++;
    else level.isNameNext = true;
  }
}

/** The last character of a token, and whether it has something in it that needs a closer look. */
interface End {
  at: number;
  isOdd: boolean;
}

/** Odd: it has an escape in it. Undefined: it has no end. */
function endOfString(text: Text, start: number): End | undefined {
  let isOdd = false;
  for (let at = start + 1; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === quote) return { at, isOdd };
    if (character !== backslash) continue;
    isOdd = true;
    at++; // what is escaped does not end the string
  }
  return undefined;
}

/** Odd: it has an exponent in it. */
function endOfNumber(text: Text, start: number): End {
  let isOdd = false;
  let at = start + 1;
  for (; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (exponents.has(character)) isOdd = true;
    else if (!numeric.has(character)) break;
  }
  return { at: at - 1, isOdd };
}
const exponents = new Set([..."eE"].map(code));
const numeric = new Set([..."0123456789+-."].map(code));

function nameFault(text: Text, start: number, end: End, level: Level): string | undefined {
  const name = decode(text, start, end);
  if (name === undefined) return undefined;
  level.key = name;
  level.names ??= new Set();
  if (level.names.has(name)) return "the name stands twice in one object";
  level.names.add(name);
  // JSON.parse makes an ordinary property of it; whatever copies the object makes it the prototype.
  if (name === "__proto__") return "the name __proto__ is not taken";
  return isStorable(name) ? undefined : "a name with a NUL character or half a surrogate pair in it";
}

/** The body was decoded from UTF-8 and a control character is not JSON, so only an escape can make these. */
function textFault(text: Text, start: number, end: End): string | undefined {
  if (!end.isOdd) return undefined;
  const value = decode(text, start, end);
  return value === undefined || isStorable(value)
    ? undefined
    : "a NUL character or half a surrogate pair in it";
}

function decode(text: Text, start: number, end: End): string | undefined {
  if (!end.isOdd) return text.slice(start + 1, end.at);
  try {
    return JSON.parse(text.slice(start, end.at + 1));
  } catch {
    return undefined; // an escape that JSON does not have
  }
}

/** Postgres keeps neither a NUL character nor half of a surrogate pair. */
const isStorable = (text: string) => !text.includes("\0") && text.isWellFormed();

function numberFault(text: Text, start: number, end: End): string | undefined {
  if (!end.isOdd && end.at - start < surelyExact) return undefined;
  const source = text.slice(start, end.at + 1);
  return isExact(Number(source), source)
    ? undefined
    : `the number ${source.slice(0, 40)} does not fit a double: send it as a string`;
}

/** Would it be read back as it was written? Fifteen digits always are. */
function isExact(value: number, source: string): boolean {
  const digits = source.replace(/e.*$/i, "").replace(/[-.]/g, "").replace(/^0+/, "");
  const isInRange = Number.isFinite(value) && (value !== 0 || digits === "");
  return isInRange && (digits.length <= 15 || Number.isSafeInteger(value) || String(value) === source);
}
