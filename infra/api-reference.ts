// Writes docs/api.md, the reference of the HTTP API, from the OpenAPI document: `npm run docs`. A test checks that the file
// is current.
import { writeFileSync } from "node:fs";
import { openapiDocument } from "../src/contract/openapi.ts";

interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  description?: string;
}
interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
}
interface Described {
  summary: string;
  description?: string;
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: Record<string, { schema: Schema }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>;
}
interface Document {
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema> };
}

const introduction = `# API reference

This page is generated from the OpenAPI document (\`npm run docs\`), which is made from the schemas that check the requests. Your
Worker serves it as \`GET /openapi.json\`. [http.md](http.md) explains keys, roles and errors.
`;

export function apiReference(): string {
  const { paths, components } = openapiDocument() as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) =>
      describe(`${method.toUpperCase()} ${path}`, described),
    ),
  );
  const { Json: _, JsonObject: __, ...shapes } = components.schemas;
  const named = Object.entries(shapes).map(([name, schema]) => `### ${name}\n\n${fields(schema)}`);
  return `${[introduction, "## Requests\n", ...operations, "## Shapes\n", ...named].join("\n").trimEnd()}\n`;
}

function describe(
  title: string,
  { summary, description, parameters = [], requestBody, responses }: Described,
): string {
  const body = requestBody && Object.values(requestBody.content)[0]?.schema;
  const answers = Object.entries(responses).filter(([status]) => status < "400");
  const asked = parameters.filter(({ in: place }) => place !== "path");
  return [
    `### \`${title}\`\n`,
    `${summary}. ${description ?? "No key is needed."}\n`,
    asked.length > 0 ? table(asked.map(toRow)) : "",
    body ? `Body${requestBody.required ? "" : " (may be left out)"}: ${shape(body)}\n` : "",
    ...answers.map(
      ([status, { content = {} }]) => `${status}: ${shape(Object.values(content)[0]?.schema ?? {})}\n`,
    ),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function toRow({ name, in: place, required, description, schema }: Parameter): string[] {
  return [
    `\`${name}\`${place === "header" ? " (header)" : ""}`,
    typeOf(schema),
    required ? "yes" : "",
    description ?? schema.description ?? "",
  ];
}

/** A named shape is a link. Any other with fields is a table below the line. */
function shape(schema: Schema): string {
  return schema.properties ? `\n\n${fields(schema)}` : typeOf(schema);
}

function fields({ properties = {}, required = [] }: Schema): string {
  return table(
    Object.entries(properties).map(([name, field]) => [
      `\`${name}\``,
      typeOf(field),
      required.includes(name) ? "yes" : "",
      field.description ?? "",
    ]),
  );
}

function table(rows: string[][]): string {
  const lines = rows.map(
    (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`,
  );
  return ["| name | type | required | meaning |", "| --- | --- | --- | --- |", ...lines, ""].join("\n");
}

function typeOf(schema: Schema): string {
  const { $ref, const: value, enum: values, items, type } = schema;
  if ($ref) {
    const name = $ref.split("/").at(-1) ?? "";
    return name.startsWith("Json")
      ? name === "Json"
        ? "any JSON"
        : "object"
      : `[${name}](#${name.toLowerCase()})`;
  }
  if (value !== undefined) return `\`${JSON.stringify(value)}\``;
  if (values) return values.map((one) => `\`${JSON.stringify(one)}\``).join(", ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return [...new Set(choices.map(typeOf))].join(" or ");
  if (items) return `list of ${typeOf(items)}`;
  if (schema.properties)
    return `object with ${Object.keys(schema.properties)
      .map((name) => `\`${name}\``)
      .join(", ")}`;
  return [type ?? "any JSON"].flat().join(" or ");
}

if (import.meta.main) writeFileSync(new URL("../docs/api.md", import.meta.url), apiReference());
