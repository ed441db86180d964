// The OpenAPI document (3.1), made from the same schemas that check the requests.
import { noticeBody } from "./alarms.ts";
import { componentSchemas, toSchema } from "./openapi-schema.ts";
import type { Operation } from "./operation.ts";
import { answerProblems } from "./operation-problems.ts";
import { operations } from "./operations.ts";
import { version } from "./version.ts";

export function openapiDocument(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const [id, operation] of Object.entries<Operation>(operations)) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method]: describeOperation(id, operation),
    };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Sluice", version, description: "A job queue inside your own Postgres." },
    servers: [{ url: "/", description: "The Worker that this document came from." }],
    security: [{ key: [] }],
    components: {
      securitySchemes: { key: { type: "http", scheme: "bearer" } },
      schemas: componentSchemas(),
    },
    paths,
    webhooks: { alarm: { post: alarmNotice() } },
  };
}

function alarmNotice(): object {
  return {
    operationId: "alarmNotice",
    summary: "A notice to an alarm target with the format generic, signed as Standard Webhooks specifies",
    security: [],
    requestBody: { required: true, content: toContent(toSchema(noticeBody, "output")) },
    responses: {
      "2XX": { description: "Accepted" },
      410: { description: "Gone. Sluice sends nothing more to this URL" },
    },
  };
}

function describeOperation(id: string, operation: Operation): object {
  const { summary, roles, body } = operation;
  return {
    operationId: id,
    summary,
    ...(roles ? { description: `Roles: ${[...roles, "admin"].join(", ")}.` } : { security: [] }),
    parameters: describeParameters(operation),
    ...(body
      ? {
          requestBody: {
            required: !body.isOptional,
            content: toContent(toSchema(body.schema, "input")),
          },
        }
      : {}),
    responses: { ...describeAnswers(operation), ...answerProblems(operation) },
  };
}

function describeAnswers({ answers, answersAs, answerHeaders = {} }: Operation): object {
  const headers = Object.fromEntries(
    Object.entries(answerHeaders).map(([name, description]) => [
      name,
      { description, required: true, schema: { type: "string" } },
    ]),
  );
  return Object.fromEntries(
    Object.entries(answers).map(([status, schema]) => [
      status,
      {
        description: descriptions[status] ?? "",
        ...(answerHeaders ? { headers } : {}),
        content: toContent(toSchema(schema, "output"), answersAs),
      },
    ]),
  );
}

const descriptions: Record<string, string> = { 200: "OK", 201: "Created", 503: "The queue does not work" };

function describeParameters({ path, query, headers = {} }: Operation): object[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: name === "id" ? { type: "string", format: "uuid" } : { type: "string" },
  }));
  const inQuery = Object.entries(query?.shape ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    ...(schema.safeParse(undefined).success ? {} : { required: true }),
    schema: toSchema(schema, "input"),
  }));
  const inHeaders = Object.entries(headers).map(([name, description]) => ({
    name,
    in: "header",
    description,
    schema: { type: "string" },
  }));
  return [...inPath, ...inQuery, ...inHeaders];
}

function toContent(schema: object, type = "application/json"): object {
  return { [type]: { schema } };
}
