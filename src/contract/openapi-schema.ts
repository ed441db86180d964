// The schemas of the OpenAPI document, made from those of zod. Schemas that are used in several places are named components.
import * as z from "zod";
import { enqueueRequest, enqueueResponse, jobResponse } from "./jobs.ts";
import { json, jsonObject } from "./json.ts";
import { problem } from "./problem.ts";

type Direction = "input" | "output";

const components: Record<string, { schema: z.ZodType; io: Direction }> = {
  EnqueuedJob: { schema: enqueueResponse, io: "output" },
  Job: { schema: jobResponse, io: "output" },
  Json: { schema: json, io: "output" },
  JsonObject: { schema: jsonObject, io: "output" },
  NewJob: { schema: enqueueRequest, io: "input" },
  Problem: { schema: problem, io: "output" },
};

for (const [id, { schema }] of Object.entries(components))
  z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id });

export function componentSchemas(): Record<string, object> {
  return Object.fromEntries(
    Object.entries(components).map(([name, { schema, io }]) => [name, inlineSchema(schema, io)]),
  );
}

export function toSchema(schema: z.ZodType, io: Direction): object {
  const name = z.globalRegistry.get(schema)?.id;
  return name ? { $ref: `#/components/schemas/${name}` } : inlineSchema(schema, io);
}

/** zod puts named schemas into `$defs`. They are components of the document, so references are changed. */
function inlineSchema(schema: z.ZodType, io: Direction): object {
  const { $schema, $defs, id, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    override: ({ jsonSchema }) => {
      nameProperties(jsonSchema);
      describeDefault(jsonSchema);
    },
  });
  return JSON.parse(JSON.stringify(rest).replaceAll('"#/$defs/', '"#/components/schemas/'));
}

/** Describes a record with a fixed list of keys as an object, so that a generated client has each field. */
function nameProperties(schema: z.core.JSONSchema.BaseSchema): void {
  const { propertyNames, required, additionalProperties } = schema;
  if (!propertyNames || !required || !additionalProperties) return;
  schema.properties = Object.fromEntries(required.map((name) => [name, additionalProperties]));
  schema.additionalProperties = false;
  delete schema.propertyNames;
}

/** Puts the default into the description: generators would make a field with a default required in requests. */
function describeDefault(schema: z.core.JSONSchema.BaseSchema): void {
  if (!("default" in schema)) return;
  const text = `Default: ${JSON.stringify(schema.default)}.`;
  schema.description = schema.description ? `${schema.description} ${text}` : text;
  delete schema.default;
}
