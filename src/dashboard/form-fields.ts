// Reads the fields of a form: texts, numbers, times, JSON, and the payload that somebody has typed into the form of a type.

import { SluiceError } from "../core/errors.ts";
import { firstFault } from "../core/json-scan.ts";
import { parseStrictJson } from "../core/strict-json.ts";

/** A field of a form that cannot be read. */
export class FormError extends Error {
  /** As the API would name it. */
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

/** The name of a payload's field says what it is: `payload:number:count`. */
const fieldName = /^payload:(string|number|boolean|enum):(.+)$/;

export function nameOfField({ kind, name }: { kind: string; name: string }): string {
  return `payload:${kind}:${name}`;
}

/** A field that is empty is left out, so its default applies. */
export function payloadOfForm(form: URLSearchParams): unknown {
  if (form.has("payload")) return jsonField(form, "payload");
  return Object.fromEntries(
    [...form].flatMap(([field, text]) => {
      const [, kind = "", name = ""] = fieldName.exec(field) ?? [];
      return kind === "" || text === "" ? [] : [[name, toValue(kind, name, text)]];
    }),
  );
}

function toValue(kind: string, name: string, text: string): unknown {
  if (kind === "boolean") return text === "true";
  if (kind !== "number") return text;
  const number = Number(text);
  if (!Number.isFinite(number)) throw new FormError(`payload.${name}`, "this is not a number");
  // JSON.stringify would store another number than the one that was typed.
  const fault = firstFault(text);
  if (fault) throw new FormError(`payload.${name}`, fault.message);
  return number;
}

export function jsonField(form: URLSearchParams, name: string): unknown {
  try {
    return parseStrictJson(form.get(name) ?? "");
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const [fault] = error.faults;
    if (!fault?.path) throw new FormError(name, "this is not JSON");
    throw new FormError(`${name}.${fault.path}`, fault.message);
  }
}

/** Those that are not empty. */
export function textFields(form: URLSearchParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = form.get(name);
      return value ? [[name, value]] : [];
    }),
  );
}

/** Names with commas or spaces between them. Undefined if there is none. */
export function namesField(form: URLSearchParams, name: string): string[] | undefined {
  const names = (form.get(name) ?? "").split(/[\s,]+/).filter((text) => text !== "");
  return names.length === 0 ? undefined : names;
}

/** Undefined if it is empty. */
export function wholeNumber(form: URLSearchParams, name: string): number | undefined {
  const text = form.get(name)?.trim();
  if (!text) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new FormError(name, "this is not a whole number");
  return Number(text);
}

/** A browser sends the time without a zone: "2026-11-16T18:00". It is meant as UTC. */
export function utcField(form: URLSearchParams, name: string): string {
  const at = new Date(`${form.get(name)}Z`);
  if (Number.isNaN(at.getTime())) throw new FormError(name, "this is not a time");
  return at.toISOString();
}
