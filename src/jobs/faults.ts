// A zod error as a list of faults, each with the path of the field at fault.
import type * as z from "zod";
import type { Fault } from "../core/errors.ts";

export function faultsOf(error: z.ZodError, prefix: readonly PropertyKey[] = []): Fault[] {
  return error.issues.map(({ path, message }) => ({
    path: [...prefix, ...path].map(String).join("."),
    message,
  }));
}
