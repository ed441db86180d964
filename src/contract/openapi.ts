// The OpenAPI document (3.1), made from the same schemas that check the requests.
import * as z from "zod";
import {
  batchRequest,
  batchResponse,
  enqueueRequest,
  enqueueResponse,
  jobResponse,
  listQuery,
  listResponse,
} from "./jobs.ts";
import { problem } from "./problem.ts";
import {
  claimRequest,
  claimResponse,
  completeRequest,
  extendRequest,
  failRequest,
  releaseRequest,
  settlementsRequest,
  settlementsResponse,
} from "./work.ts";

export interface Operation {
  method: "get" | "post" | "delete";
  /** With its parameters in braces. */
  path: string;
  summary: string;
  /** Who may, beside an admin. Null: everybody, without a key. */
  roles: readonly string[] | null;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** What comes back when all is well, by status. */
  answers: Record<number, z.ZodType>;
  /** The problems that are this operation's own; those of keys, bodies and the database are common to all. */
  problems?: readonly number[];
}

const health = z.object({ status: z.string(), checks: z.record(z.string(), z.string()) });
const held = { roles: ["worker"], problems: [404, 409] } as const;

export const operations: readonly Operation[] = [
  {
    method: "post",
    path: "/v1/jobs",
    summary: "Enqueue a job",
    roles: ["producer"],
    body: enqueueRequest,
    answers: { 201: enqueueResponse, 200: enqueueResponse },
    problems: [403, 422],
  },
  {
    method: "post",
    path: "/v1/jobs/batch",
    summary: "Enqueue up to 100 jobs, all or none",
    roles: ["producer"],
    body: batchRequest,
    answers: { 201: batchResponse },
    problems: [403, 422],
  },
  {
    method: "get",
    path: "/v1/jobs",
    summary: "List jobs, newest first",
    roles: ["producer", "worker", "viewer"],
    query: listQuery,
    answers: { 200: listResponse },
  },
  {
    method: "get",
    path: "/v1/jobs/{id}",
    summary: "Look at a job: its state, its errors, its output",
    roles: ["producer", "worker", "viewer"],
    answers: { 200: jobResponse },
    problems: [404],
  },
  {
    method: "post",
    path: "/v1/jobs/{id}/cancel",
    summary: "Cancel a pending job",
    roles: ["producer"],
    answers: { 200: jobResponse },
    problems: [404, 409],
  },
  {
    method: "post",
    path: "/v1/claims",
    summary: "Claim due jobs under a lease",
    roles: ["worker"],
    body: claimRequest,
    answers: { 200: claimResponse },
  },
  {
    ...held,
    method: "post",
    path: "/v1/jobs/{id}/complete",
    summary: "Complete a claimed job",
    body: completeRequest,
    answers: { 200: jobResponse },
  },
  {
    ...held,
    method: "post",
    path: "/v1/jobs/{id}/fail",
    summary: "Fail a claimed job",
    body: failRequest,
    answers: { 200: jobResponse },
  },
  {
    ...held,
    method: "post",
    path: "/v1/jobs/{id}/release",
    summary: "Give a claimed job back",
    body: releaseRequest,
    answers: { 200: jobResponse },
  },
  {
    ...held,
    method: "post",
    path: "/v1/jobs/{id}/extend",
    summary: "Hold a claimed job for longer",
    body: extendRequest,
    answers: { 200: jobResponse },
  },
  {
    method: "post",
    path: "/v1/settlements",
    summary: "Settle up to 1,000 claimed jobs, each on its own",
    roles: ["worker"],
    body: settlementsRequest,
    answers: { 200: settlementsResponse },
  },
  {
    method: "get",
    path: "/health",
    summary: "Is the queue able to work",
    roles: null,
    answers: { 200: health, 503: health },
  },
];

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
      ? { requestBody: { required: true, content: json(schemaOf(operation.body, "input")) } }
      : {}),
    responses: {
      ...Object.fromEntries(
        Object.entries(operation.answers).map(([status, schema]) => [
          status,
          { description: "", content: json(schemaOf(schema, "output")) },
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

function json(schema: object): object {
  return { "application/json": { schema } };
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}
