// Turns a zod error into a list of faults, each with the path of its field. The list goes back to the caller, so its
// size is bounded.
import type * as z from "zod";
import type { Fault } from "../core/errors.ts";

const maxFaults = 100;
const maxLength = 300;

export function faultsOf(error: z.ZodError, prefix: readonly PropertyKey[] = []): Fault[] {
  const faults = error.issues.slice(0, maxFaults).flatMap((issue) => {
    if (issue.code !== "unrecognized_keys") return [{ path: issue.path, message: issue.message }];
    return issue.keys
      .slice(0, maxFaults)
      .map((key) => ({ path: [...issue.path, key], message: "not a known field" }));
  });
  return faults.slice(0, maxFaults).map(({ path, message }) => ({
    path: [...prefix, ...path].map(String).join(".").slice(0, maxLength),
    message: message.slice(0, maxLength),
  }));
}
