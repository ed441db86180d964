// JSON in which nothing would come back as something else, or not at all.
import { SluiceError } from "../../../core/errors.ts";
import { firstFault } from "./json-scan.ts";

/** The walk over the text comes first: JSON.parse needs memory for each level, and nobody needs so many. */
export function parseStrictJson(text: string): unknown {
  const fault = firstFault(text);
  if (fault) {
    throw new SluiceError("request_invalid", "the body holds what cannot be kept", { faults: [fault] });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as Error;
    throw new SluiceError("request_invalid", `the body is not JSON: ${message}`, {
      faults: [{ path: "", message: "not JSON" }],
      cause: error,
    });
  }
}
