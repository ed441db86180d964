// The problems that an operation may answer with, for the OpenAPI document.
import type { Operation } from "./operation.ts";

const ofEvery = {
  500: "a fault of Sluice itself: the Worker's log has it",
  503: "the database cannot do this now: out of reach, read-only, full, busy, or not migrated",
};
const ofKeys = {
  401: "the key is missing or unknown",
  403: "the key may not do this",
  429: "too many requests",
};
const ofQueries = { 400: "a parameter is at fault" };
const ofBodies = {
  400: "a field is at fault",
  413: "the body is too large",
  415: "the body is not JSON",
};
const own: Record<number, string> = {
  404: "there is no such thing",
  409: "the state does not allow this",
  422: "the idempotency key was used for another request",
};

const content = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };

export function answerProblems(operation: Operation): object {
  const descriptions: Record<number, string> = {
    ...ofEvery,
    ...(operation.roles ? ofKeys : {}),
    ...(operation.query ? ofQueries : {}),
    ...(operation.body ? ofBodies : {}),
    ...Object.fromEntries((operation.problems ?? []).map((status) => [status, own[status] ?? ""])),
  };
  return Object.fromEntries(
    Object.entries(descriptions)
      .filter(([status]) => !(Number(status) in operation.answers))
      .map(([status, description]) => [status, { description, ...headersOf(status), content }]),
  );
}

function headersOf(status: string): object {
  const name = status === "401" ? "WWW-Authenticate" : "Retry-After";
  if (!["401", "429", "503"].includes(status)) return {};
  const description = status === "401" ? "the scheme: Bearer" : "in seconds: when another try makes sense";
  const type = status === "401" ? "string" : "integer";
  return { headers: { [name]: { description, required: true, schema: { type } } } };
}
