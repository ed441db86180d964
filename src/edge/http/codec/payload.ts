// Checks the payload of a request by its size and by the schema of its type.
import { SluiceError } from "../../../core/errors.ts";
import type { Payload } from "../../../core/job.ts";
import { jobLimits } from "../../../core/job-options.ts";
import type { JobDefinition } from "../../../jobs/define.ts";

const { maxPayloadBytes } = jobLimits;

/** `path` is the place of the payload in the body. */
export function refuseBadPayload(definition: JobDefinition, payload: Payload, path: readonly string[]): void {
  const bytes = payloadBytes(payload);
  if (bytes > maxPayloadBytes) {
    const fault = {
      path: path.join("."),
      message: `${bytes} bytes of JSON; the limit is ${maxPayloadBytes}`,
    };
    throw new SluiceError("body_too_large", `${fault.path} has ${fault.message}`, { faults: [fault] });
  }
  const faults = definition
    .faultsOf(payload)
    .map((fault) => ({ ...fault, path: [...path, fault.path].filter(Boolean).join(".") }));
  if (faults.length > 0) {
    throw new SluiceError("request_invalid", `invalid payload for the type "${definition.type}"`, {
      faults,
    });
  }
}

/** The same as the database measures (migrations/functions/check.sql): JSON in UTF-8, with numbers written out. */
export function payloadBytes(payload: Payload): number {
  const text = JSON.stringify(payload);
  const bytes = new TextEncoder().encode(text).byteLength;
  if (bytes > maxPayloadBytes || !/\de[+-]\d/.test(text)) return bytes;
  const withExponent = text
    .replace(/"(?:[^"\\]|\\.)*"/g, "") // digits inside a string are not a number
    .matchAll(/(\d)(?:\.(\d+))?e([+-]\d+)/g);
  return [...withExponent].reduce(
    (sum, [number, ...parts]) => sum + writtenOutLength(parts) - number.length,
    bytes,
  );
}

/** The length without an exponent: 1.5e+21 is 1500000000000000000000, and 1.5e-7 is 0.00000015. */
function writtenOutLength([first = "", rest = "", exponent]: (string | undefined)[]): number {
  const places = Number(exponent);
  return places > 0 ? places + 1 : "0.".length - places - 1 + first.length + rest.length;
}
