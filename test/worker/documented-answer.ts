// Checks each answer of the worker tests against the OpenAPI document, with a validator from a library: the document
// names its status, its headers are there, and its body fits the schema.
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
/** Paths without parameters come first, so that `/v1/jobs/batch` does not match `/v1/jobs/{id}`. */
const paths = Object.entries(document.paths)
  .toSorted(([a], [b]) => a.split("{").length - b.split("{").length)
  .map(([path, operations]) => ({
    pattern: new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`),
    operations,
  }));
const validators = new WeakMap<object, Validator>();

/** Returns the answer. Throws if it is not as documented. Ignores paths and methods that the document does not have. */
export async function documentedAnswer(request: Request, response: Response): Promise<Response> {
  const { pathname } = new URL(request.url);
  const method = request.method.toLowerCase();
  const operations = paths.find(({ pattern }) => pattern.test(pathname))?.operations;
  const operation = operations?.[method];
  if (!operation) return response;
  const fault = await faultOf(operation.responses[response.status], response.clone());
  if (fault) throw new Error(`${request.method} ${pathname} answers ${response.status}: ${fault}`);
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
  const validator = validators.get(schema) ?? new Validator({ ...schema, components }, "2020-12", false);
  validators.set(schema, validator);
  return validator;
}
