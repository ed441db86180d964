// The form for a payload, from the schema of its type: a field for each property of a flat object, or else one for the whole JSON.
import * as z from "zod";
import type { StandardSchema } from "../../../core/standard-schema.ts";

export interface PayloadField {
  name: string;
  kind: "string" | "number" | "boolean" | "enum";
  isRequired: boolean;
  description: string | undefined;
  /** Of an enum. */
  values: readonly string[];
  isWhole: boolean;
}

export interface PayloadForm {
  /** Null: the schema is not flat, so the payload is written as JSON. */
  fields: readonly PayloadField[] | null;
  /** A payload of about the right shape. */
  example: unknown;
}

type Schema = z.core.JSONSchema.JSONSchema;

export function payloadForm(payload: StandardSchema): PayloadForm {
  const schema = toJsonSchema(payload);
  const properties = Object.entries(schema.properties ?? {});
  const fields = properties.map(([name, property]) =>
    toField(name, property, schema.required?.includes(name) ?? false),
  );
  const isFlat = schema.type === "object" && !schema.additionalProperties && fields.every(Boolean);
  return { fields: isFlat ? fields.filter((field) => field !== null) : null, example: exampleOf(schema) };
}

/** A schema of another library, or one that cannot be told as JSON Schema, is a plain object. */
function toJsonSchema(payload: StandardSchema): Schema {
  try {
    return z.toJSONSchema(payload as unknown as z.ZodType, { io: "input", unrepresentable: "any" });
  } catch {
    return { type: "object", additionalProperties: true };
  }
}

function toField(name: string, property: Schema | boolean, isRequired: boolean): PayloadField | null {
  if (typeof property === "boolean") return null;
  const kind = kindOf(property);
  if (!kind) return null;
  return {
    ...{ name, kind, description: property.description },
    // A property with a default need not be sent.
    isRequired: isRequired && property.default === undefined,
    values: (property.enum ?? []).map(String),
    isWhole: property.type === "integer",
  };
}

function kindOf({ type, enum: values }: Schema): PayloadField["kind"] | undefined {
  if (values) return values.every((value) => typeof value === "string") ? "enum" : undefined;
  if (type === "integer") return "number";
  return type === "string" || type === "number" || type === "boolean" ? type : undefined;
}

/** Deeper than this, a schema may refer to itself. */
const maxDepth = 5;

function exampleOf(schema: Schema | boolean, depth = 0): unknown {
  if (typeof schema === "boolean" || depth > maxDepth) return null;
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const [choice] = schema.anyOf ?? schema.oneOf ?? [];
  if (choice !== undefined) return exampleOf(choice as Schema | boolean, depth + 1);
  switch (schema.type) {
    case "object":
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, property]) => [
          name,
          exampleOf(property, depth + 1),
        ]),
      );
    case "array":
      return schema.items && !Array.isArray(schema.items)
        ? [exampleOf(schema.items as Schema | boolean, depth + 1)]
        : [];
    case "string":
      return "text";
    case "integer":
    case "number":
      return Math.max(0, schema.minimum ?? 0);
    case "boolean":
      return false;
    default:
      return null;
  }
}
