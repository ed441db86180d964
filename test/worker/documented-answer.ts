// Holds each answer of the worker tests against the OpenAPI document, with a validator of others: its status is one that
// the document names, its headers are there, its body fits the schema.
import { type Schema, Validator } from "@cfworker/json-schema";
import { openapiDocument } from "../../src/contract/openapi.ts";

interface Described {
  headers?: Record<string, { required?: boolean }>;
  content: Record<string, { schema: Schema }>;
}
type Operations = Record<string, { responses: Record<string, Described> }>;

const document = openapiDocument() as {
  paths: Record<string, Operations>;
  components: { schemas: Record<string, Schema> };
};
const { components } = document;
/** A path without parameters first: `/v1/jobs/batch` is no `/v1/jobs/{id}`. */
const paths = Object.entries(document.paths)
  .toSorted(([a], [b]) => a.split("{").length - b.split("{").length)
  .map(([path, operations]) => ({
    pattern: new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`),
    operations,
  }));
const validators = new WeakMap<object, Validator>();

/** The answer itself; what is not as documented throws. Paths and methods that the document does not have are left out. */
export async function documentedAnswer(request: Request, response: Response): Promise<Response> {
  const { pathname } = new URL(request.url);
  const method = request.method.toLowerCase();
  const operations = paths.find(({ pattern }) => pattern.test(pathname))?.operations;
  const operation = operations?.[method];
  if (!operation) return response;
  const told = await faultOf(operation.responses[response.status], response.clone());
  if (told) throw new Error(`${request.method} ${pathname} answers ${response.status}: ${told}`);
  return response;
}

async function faultOf(described: Described | undefined, response: Response): Promise<string | undefined> {
  if (!described) return "the document does not know this status";
  const missing = Object.entries(described.headers ?? {}).find(
    ([name, { required }]) => required && !response.headers.has(name),
  );
  if (missing) return `the header ${missing[0]} is missing`;
  const type = response.headers.get("content-type")?.split(";")[0] ?? "";
  const schema = described.content[type]?.schema;
  if (!schema) return `the document does not know the content type ${type}`;
  const body = type.endsWith("json") ? await response.json() : await response.text();
  const { valid, errors } = validatorOf(schema).validate(body);
  return valid ? undefined : `the body does not fit: ${JSON.stringify(errors)}`;
}

function validatorOf(schema: Schema): Validator {
  const known = validators.get(schema) ?? new Validator({ ...schema, components }, "2020-12", false);
  validators.set(schema, known);
  return known;
}
