// Reads and writes just enough of wrangler's two formats, TOML and JSON with comments, to add settings and keep every
// character that is there.

export type Format = "toml" | "json";

const tokens: Record<Format, RegExp> = {
  toml: /"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#.*/g,
  json: /"(?:[^"\\\n]|\\.)*"|\/\/.*|\/\*[\s\S]*?\*\//g,
};

/** Comments may have settings in them that are switched off. */
export function withoutComments(text: string, format: Format): string {
  return text.replace(tokens[format], (token) => (/^["']/.test(token) ? token : ""));
}

/** Throws if it is not JSON. Trailing commas are allowed, as wrangler allows them. */
export function parseJsonc(text: string): Record<string, unknown> {
  const plain = withoutComments(text, "json").replace(/("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])/g, "$1");
  return JSON.parse(plain) as Record<string, unknown>;
}

/** The names of the top-level settings, and those that are lists of tables, to which more can be appended. */
export function topLevelOf(text: string, format: Format): { names: Set<string>; lists: Set<string> } {
  if (format === "json") return { names: new Set(Object.keys(parseJsonc(text))), lists: new Set() };
  const names = new Set<string>();
  const lists = new Set<string>();
  let isInTable = false;
  const withoutLongTexts = withoutComments(text, format).replace(/"""[\s\S]*?"""|'''[\s\S]*?'''/g, '""');
  for (const line of withoutLongTexts.split("\n")) {
    const [, brackets, table] = /^\s*(\[\[?)\s*([\w-]+)/.exec(line) ?? [];
    const key = /^\s*([\w-]+)\s*(?:\.[\w-]+\s*)*=/.exec(line)?.[1];
    if (table) {
      isInTable = true;
      names.add(table);
      if (brackets === "[[") lists.add(table);
    } else if (key && !isInTable) names.add(key);
  }
  return { names, lists };
}

/** A top-level text such as the Worker's name. */
export function textOf(text: string, name: string, format: Format): string | undefined {
  if (format === "json") {
    const value = parseJsonc(text)[name];
    return typeof value === "string" ? value : undefined;
  }
  const [head = ""] = withoutComments(text, format).split(/^\s*\[/m);
  return new RegExp(`^\\s*${name}\\s*=\\s*["']([^"'\\n]*)["']`, "m").exec(head)?.[1];
}

/** The settings in the format of the file, for people or to be added. */
export function render(settings: Record<string, unknown>, format: Format): string {
  if (format === "json")
    return Object.entries(settings)
      .map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`)
      .join("");
  return Object.entries(settings)
    .map(([name, value]) => renderToml(name, value))
    .join("\n");
}

/** Adds what `render` made. TOML's plain keys must stand before the first table, and all else may stand at the end. */
export function add(text: string, settings: Record<string, unknown>, format: Format): string {
  if (format === "json") {
    const comments = /^(?:\s|\/\/.*|\/\*[\s\S]*?\*\/)*\{/.exec(text)?.[0] ?? "{";
    return `${comments}\n${render(settings, format)}${text.slice(comments.length).replace(/^\n/, "")}`;
  }
  const isPlain = ([, value]: [string, unknown]) => !isTable(value);
  const plain = Object.fromEntries(Object.entries(settings).filter(isPlain));
  const tables = Object.fromEntries(Object.entries(settings).filter((entry) => !isPlain(entry)));
  return [render(plain, format), text.trimEnd(), "\n\n", render(tables, format)]
    .join("")
    .trimEnd()
    .concat("\n");
}

function isTable(value: unknown): boolean {
  return typeof (Array.isArray(value) ? value[0] : value) === "object";
}

function renderToml(name: string, value: unknown): string {
  if (Array.isArray(value) && isTable(value))
    return value.map((item) => `[[${name}]]\n${renderFields(item)}`).join("\n");
  if (!isTable(value)) return `${name} = ${JSON.stringify(value)}\n`;
  const fields = Object.entries(value as object);
  const lists = fields.filter(([, field]) => Array.isArray(field) && isTable(field));
  if (lists.length === fields.length)
    return lists.map(([key, field]) => renderToml(`${name}.${key}`, field)).join("\n");
  return `[${name}]\n${renderFields(value as object)}`;
}

function renderFields(fields: object): string {
  return Object.entries(fields)
    .map(([key, value]) => `${key} = ${inline(value)}\n`)
    .join("");
}

function inline(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, field]) => `${key} = ${inline(field)}`);
  return `{ ${fields.join(", ")} }`;
}
