// Turns the issues of a schema into a list of faults, each with the path of its field. The list goes back to the caller, so
// its size is bounded.
import type { Fault } from "../core/errors.ts";
import type { SchemaIssue } from "../core/standard-schema.ts";

const maxFaults = 100;
const maxLength = 300;

export function faultsOf(
  { issues }: { issues: readonly SchemaIssue[] },
  prefix: readonly PropertyKey[] = [],
): Fault[] {
  const faults = issues.slice(0, maxFaults).flatMap((issue) => {
    const path = (issue.path ?? []).map((part) => (typeof part === "object" ? part.key : part));
    if (!isOfUnknownKeys(issue)) return [{ path, message: issue.message }];
    return issue.keys
      .slice(0, maxFaults)
      .map((key) => ({ path: [...path, key], message: "not a known field" }));
  });
  return faults.slice(0, maxFaults).map(({ path, message }) => ({
    path: [...prefix, ...path].map(String).join(".").slice(0, maxLength),
    message: message.slice(0, maxLength),
  }));
}

/** zod has one issue for all unknown fields of an object. */
function isOfUnknownKeys(issue: SchemaIssue): issue is SchemaIssue & { keys: string[] } {
  return "code" in issue && issue.code === "unrecognized_keys" && "keys" in issue;
}
