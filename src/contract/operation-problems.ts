// The problems that an operation can answer with, for the OpenAPI document.
import type { Operation, RequestBody } from "./operation.ts";

const always = {
  500: "An error in Sluice. The Worker's log has the details",
  503: "The database cannot do this now: it is unreachable, read-only, full, busy or not migrated",
};
const withKey = {
  401: "The key is missing or unknown",
  403: "The key may not do this",
  429: "Too many requests, the queue is full, or too many workers are live",
};
const specific: Record<number, string> = {
  404: "Not found",
  409: "The state of the job does not allow this",
  422: "The idempotency key was used for a different request",
};

const content = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };

export function answerProblems(operation: Operation): object {
  const descriptions: Record<number, string> = {
    ...always,
    ...(operation.roles ? withKey : {}),
    ...(operation.query ? { 400: "A parameter is invalid" } : {}),
    ...(operation.body ? bodyProblems(operation.body) : {}),
    ...Object.fromEntries((operation.problems ?? []).map((status) => [status, specific[status] ?? ""])),
  };
  return Object.fromEntries(
    Object.entries(descriptions)
      .filter(([status]) => !(Number(status) in operation.answers))
      .map(([status, description]) => [status, { description, ...describeHeaders(status), content }]),
  );
}

function bodyProblems({ maxBytes }: RequestBody): Record<number, string> {
  return {
    400: "A field is invalid",
    413: `The body is larger than ${maxBytes} bytes`,
    415: "The body is not JSON",
  };
}

function describeHeaders(status: string): object {
  const name = status === "401" ? "WWW-Authenticate" : "Retry-After";
  if (!["401", "429", "503"].includes(status)) return {};
  const description =
    status === "401" ? "The scheme, which is Bearer" : "The number of seconds after which to try again";
  const type = status === "401" ? "string" : "integer";
  return { headers: { [name]: { description, required: true, schema: { type } } } };
}
