// The flags of a command, from the fields of its operation's query or body. A field `max_attempts` is the flag
// --max-attempts. Values are checked by the operation's own schema before anything is sent.
import * as z from "zod";
import type { Operation } from "../contract/operation.ts";
import type { Command, Flag, Value } from "./command.ts";
import { usageError } from "./exit.ts";

type Schema = z.core.JSONSchema.BaseSchema;

export function schemaOf(operation: Operation | undefined): z.ZodType | undefined {
  return operation?.query ?? operation?.body?.schema;
}

export function pathArguments(operation: Operation | undefined): string[] {
  return [...(operation?.path.matchAll(/\{(\w+)\}/g) ?? [])].map(([, name = ""]) => name);
}

/** One for each field that is neither an argument nor set by the command. */
export function contractFlags(operation: Operation | undefined, command: Command): Flag[] {
  const taken = [...(command.arguments ?? []).map(bareName), ...Object.keys(command.sets ?? {})];
  return fieldFlags(operation).filter(({ field }) => !taken.includes(field ?? ""));
}

export function bareName(argument: string): string {
  return argument.replace(/\?$/, "");
}

export function fieldFlags(operation: Operation | undefined): Flag[] {
  const schema = schemaOf(operation);
  if (!schema) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return Object.entries(properties).map(([field, property]) =>
    toFlag(field, property as Schema, required.includes(field)),
  );
}

function toFlag(field: string, schema: Schema, isRequired: boolean): Flag {
  const shapes = shapesOf(schema);
  const choices = shapes.flatMap((shape) => (shape.enum ?? []) as string[]);
  return {
    name: field.replaceAll("_", "-"),
    field,
    kind: kindOf(shapes),
    ...(choices.length > 0 && { choices }),
    help: helpOf(schema, shapes, isRequired),
  };
}

/** The shapes that a field can have, without null. */
function shapesOf(schema: Schema): Schema[] {
  const shapes = schema.anyOf ? schema.anyOf.flatMap((shape) => shapesOf(shape as Schema)) : [schema];
  return shapes.filter(({ type }) => type !== "null");
}

function kindOf(shapes: readonly Schema[]): Flag["kind"] {
  const types = shapes.map(({ type }) => type);
  if (types.includes("array")) return types.includes("object") ? "ids" : "list";
  if (types.includes("object") || types.includes(undefined)) return "json"; // no type: any JSON
  if (types.includes("boolean")) return "boolean";
  return types.some((type) => type === "integer" || type === "number") ? "number" : "text";
}

function helpOf(schema: Schema, shapes: readonly Schema[], isRequired: boolean): string {
  const [shape = {}] = shapes;
  const { minimum, maximum } = shape;
  const limits = minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}` : "";
  const isPlain = ["string", "number"].includes(typeof schema.default);
  const parts = [
    isRequired ? "required" : "",
    schema.description?.replace(/\.$/, "") ?? "",
    limits,
    shape.format === "date-time" ? "an ISO 8601 time" : "",
    isPlain ? `default ${schema.default}` : "",
  ];
  return parts.filter((part) => part !== "").join("; ");
}

/** Refuses what the operation's own schema refuses, with the names of the flags. Sends nothing. */
export function checkFields(operation: Operation, fields: Readonly<Record<string, Value>>): void {
  const parsed = schemaOf(operation)?.safeParse(fields);
  if (!parsed || parsed.success) return;
  const faults = parsed.error.issues.map(({ path, message, code }) => {
    const [field = "", ...rest] = path.map(String);
    const flag = `--${field.replaceAll("_", "-")}`;
    const isMissing = code === "invalid_type" && fields[field] === undefined;
    return `${[flag, ...rest].join(".")}: ${isMissing ? "is required" : message}`;
  });
  throw usageError(faults.join("\n"));
}
