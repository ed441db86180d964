// A payload as a caller sends it: only so large, and what its type's schema allows.
import { SluiceError } from "../../core/errors.ts";
import type { Payload } from "../../core/job.ts";
import type { JobDefinition } from "../../jobs/define.ts";

export const maxPayloadBytes = 64 * 1024;
/** The payload's limit and room for the other fields. */
export const maxBodyBytes = maxPayloadBytes + 16 * 1024;

/** `path` is where the payload stands in the body. */
export function checkPayload(definition: JobDefinition, payload: Payload, path: readonly string[]): void {
  const bytes = new TextEncoder().encode(JSON.stringify(payload)).byteLength;
  if (bytes > maxPayloadBytes) {
    const fault = { path: path.join("."), message: `${bytes} bytes of JSON, ${maxPayloadBytes} are allowed` };
    throw new SluiceError("body_too_large", `${fault.path} has ${fault.message}`, { faults: [fault] });
  }
  const faults = definition
    .faultsOf(payload)
    .map((fault) => ({ ...fault, path: [...path, fault.path].filter(Boolean).join(".") }));
  if (faults.length > 0) {
    throw new SluiceError("request_invalid", `the payload does not fit the type "${definition.type}"`, {
      faults,
    });
  }
}
