// The OpenAPI document (3.1), made from the same schemas that check the requests.
import * as z from "zod";
import { noticeBody } from "./alarms.ts";
import type { Operation } from "./operation.ts";
import { operations } from "./operations.ts";
import { problem } from "./problem.ts";

const commonProblems = {
  401: "the key is missing or unknown",
  429: "too many requests",
  503: "the database is out of reach",
};
const bodyProblems = {
  400: "a field is at fault",
  413: "the body is too large",
  415: "the body is not JSON",
};
const ownProblems: Record<number, string> = {
  403: "the key may not do this",
  404: "there is no such thing",
  409: "the state does not allow this",
  422: "the idempotency key was used for another request",
};

export function openapiDocument({ version }: { version: string }): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: describe(operation) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Sluice", version, description: "A job queue inside your own Postgres." },
    components: {
      securitySchemes: { key: { type: "http", scheme: "bearer" } },
      schemas: { Problem: schemaOf(problem, "output") },
    },
    paths,
    webhooks: {
      alarm: {
        post: {
          summary: "A notice to an alarm target of the format generic, signed by the Standard Webhooks rules",
          requestBody: { required: true, content: contentOf(schemaOf(noticeBody, "output")) },
          responses: { "2XX": { description: "taken" }, 410: { description: "send me no more" } },
        },
      },
    },
  };
}

function describe(operation: Operation): object {
  return {
    summary: operation.summary,
    ...(operation.roles
      ? { description: `Role: ${[...operation.roles, "admin"].join(", ")}.`, security: [{ key: [] }] }
      : {}),
    parameters: [...pathParameters(operation.path), ...queryParameters(operation.query)],
    ...(operation.body
      ? { requestBody: { required: true, content: contentOf(schemaOf(operation.body, "input")) } }
      : {}),
    responses: {
      ...Object.fromEntries(
        Object.entries(operation.answers).map(([status, schema]) => [
          status,
          { description: "", content: contentOf(schemaOf(schema, "output"), operation.answersAs) },
        ]),
      ),
      ...problemsOf(operation),
    },
  };
}

function problemsOf(operation: Operation): object {
  const own = Object.fromEntries(
    (operation.problems ?? []).map((status) => [status, ownProblems[status] ?? ""]),
  );
  const all = {
    ...(operation.roles ? commonProblems : {}),
    ...(operation.body || operation.query ? bodyProblems : {}),
    ...own,
  };
  const content = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
  return Object.fromEntries(
    Object.entries(all)
      .filter(([status]) => !(Number(status) in operation.answers))
      .map(([status, description]) => [status, { description, content }]),
  );
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(query: z.ZodObject | undefined): object[] {
  return Object.entries(query?.shape ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    schema: schemaOf(schema as z.ZodType, "input"),
  }));
}

function contentOf(schema: object, type = "application/json"): object {
  return { [type]: { schema } };
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}
