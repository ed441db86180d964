// Parses JSON, and refuses values that could not be stored and read back unchanged.
import { SluiceError } from "../../../core/errors.ts";
import { firstFault } from "./json-scan.ts";

/** The scan comes first because it limits the nesting: JSON.parse needs memory for each level. */
export function parseStrictJson(text: string): unknown {
  const fault = firstFault(text);
  if (fault) {
    throw new SluiceError("request_invalid", "the body contains a value that cannot be stored unchanged", {
      faults: [fault],
    });
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
