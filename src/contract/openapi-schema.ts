// The schemas of the OpenAPI document: zod's, as JSON Schema, with what is used in several places as a named component.
import * as z from "zod";
import { enqueueRequest, enqueueResponse, jobResponse } from "./jobs.ts";
import { problem } from "./problem.ts";

type Direction = "input" | "output";

const components: Record<string, { schema: z.ZodType; io: Direction }> = {
  EnqueuedJob: { schema: enqueueResponse, io: "output" },
  Job: { schema: jobResponse, io: "output" },
  NewJob: { schema: enqueueRequest, io: "input" },
  Problem: { schema: problem, io: "output" },
};

const names = z.registry<{ id: string }>();
for (const [id, { schema }] of Object.entries(components)) names.add(schema, { id });

export function componentSchemas(): Record<string, object> {
  const schemas = Object.entries(components).map(([name, { schema, io }]) => [
    name,
    inlineSchema(schema, io),
  ]);
  // Not spelled out: generators stumble over a type that refers to itself.
  return { Json: { description: "Any JSON value." }, ...Object.fromEntries(schemas) };
}

export function schemaOf(schema: z.ZodType, io: Direction): object {
  const name = names.get(schema)?.id;
  return name ? { $ref: `#/components/schemas/${name}` } : inlineSchema(schema, io);
}

/** zod collects what is named, or refers to itself, in `$defs`. Only JSON values refer to themselves. */
function inlineSchema(schema: z.ZodType, io: Direction): object {
  const { $schema, $defs, id, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    metadata: names,
    override: ({ jsonSchema }) => {
      nameProperties(jsonSchema);
      describeDefault(jsonSchema);
    },
  });
  const text = JSON.stringify(rest)
    .replace(/"#\/\$defs\/__schema\d+"/g, '"#/components/schemas/Json"')
    .replaceAll('"#/$defs/', '"#/components/schemas/');
  return JSON.parse(text);
}

/** A record whose keys are a fixed list: as the object that it is, so that a generated client knows each field. */
function nameProperties(schema: z.core.JSONSchema.BaseSchema): void {
  const { propertyNames, required, additionalProperties } = schema;
  if (!propertyNames || !required || !additionalProperties) return;
  schema.properties = Object.fromEntries(required.map((name) => [name, additionalProperties]));
  schema.additionalProperties = false;
  delete schema.propertyNames;
}

/** In words: generators take a field with a default for one that is always there, so that a request has to have it. */
function describeDefault(schema: z.core.JSONSchema.BaseSchema): void {
  if (!("default" in schema)) return;
  schema.description = `Default: ${JSON.stringify(schema.default)}.`;
  delete schema.default;
}
