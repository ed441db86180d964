// Parses JSON that somebody has sent, typed into a form or given to a command, and refuses values that could not be stored and
// read back unchanged.
import { SluiceError } from "./errors.ts";
import { firstFault } from "./json-scan.ts";

/** The scan comes first because it limits the nesting: JSON.parse needs memory for each level. */
export function parseStrictJson(text: string, words = "the body"): unknown {
  const fault = firstFault(text);
  if (fault) {
    throw new SluiceError("request_invalid", `${words} contains a value that cannot be stored unchanged`, {
      faults: [fault],
    });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as Error;
    throw new SluiceError("request_invalid", `${words} is not JSON: ${message}`, {
      faults: [{ path: "", message: "not JSON" }],
      cause: error,
    });
  }
}

/** The error as one sentence, with the place of the value at fault. */
export function wordsOf({ message, faults }: SluiceError): string {
  const [fault] = faults;
  return fault?.path ? `${message}: ${fault.path}: ${fault.message}` : message;
}
