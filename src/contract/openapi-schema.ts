// The schemas of the OpenAPI document: zod's, as JSON Schema, with what is used in several places as a named component.
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

export function schemaOf(schema: z.ZodType, io: Direction): object {
  const name = z.globalRegistry.get(schema)?.id;
  return name ? { $ref: `#/components/schemas/${name}` } : inlineSchema(schema, io);
}

/** zod collects in `$defs` what has a name. */
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
